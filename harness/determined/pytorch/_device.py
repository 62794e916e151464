"""Selects the device of a slot and moves data to it."""

from collections.abc import Mapping
from typing import Any

import torch


def find(local_rank: int) -> torch.device:
    """Returns this worker's accelerator, or the processor if there is none."""
    if torch.cuda.is_available():
        device = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        return device
    return torch.device("cpu")


def move(data: Any, device: torch.device) -> Any:  # noqa: ANN401  # only the trial's author knows this type
    """Moves tensors and arrays in nested lists, tuples and dictionaries to ``device``; other values stay unchanged."""
    if isinstance(data, torch.Tensor):
        return data if data.device == device else data.to(device, non_blocking=True)
    if isinstance(data, Mapping):
        return {key: move(value, device) for key, value in data.items()}
    if isinstance(data, tuple):
        moved = [move(value, device) for value in data]
        return type(data)(*moved) if hasattr(data, "_fields") else tuple(moved)
    if isinstance(data, list):
        return [move(value, device) for value in data]
    if type(data).__module__ == "numpy" and type(data).__name__ == "ndarray" and data.dtype.kind in "fiub":
        return torch.from_numpy(data).to(device)
    return data
