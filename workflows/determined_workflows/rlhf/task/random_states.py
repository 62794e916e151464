"""The random streams of a worker: Python's, NumPy's and torch's, on the processor and on GPUs."""

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import numpy
import torch

_MASK = (1 << 64) - 1


def seed_all(seed: int, *parts: int) -> None:
    """Seeds every stream with a number that depends on ``seed`` and on each of ``parts``, for example a replica."""
    mixed = seed & _MASK
    for part in parts:
        mixed = ((mixed ^ (mixed >> 31)) * 0x9E3779B97F4A7C15 + part + 1) & _MASK
    random.seed(mixed)
    numpy.random.seed(mixed & 0xFFFFFFFF)
    torch.manual_seed(mixed)


def capture() -> dict[str, Any]:
    """Returns the state of every stream in values that ``torch.load`` reads with ``weights_only=True``."""
    name, keys, *rest = numpy.random.get_state()
    version, words, gauss = random.getstate()
    cuda = [torch.cuda.get_rng_state(index) for index in range(torch.cuda.device_count())] if _has_cuda() else []
    return {
        "torch": torch.get_rng_state(),
        "python": [version, list(words), gauss],
        "numpy": [name, [int(key) for key in keys], *rest],
        "cuda": cuda,
    }


def restore(state: dict[str, Any]) -> None:
    """Sets every stream to the state that :func:`capture` returned."""
    torch.set_rng_state(state["torch"])
    version, words, gauss = state["python"]
    random.setstate((version, tuple(words), gauss))
    numpy.random.set_state(tuple(state["numpy"]))
    if _has_cuda():
        for index, stream in enumerate(state["cuda"][: torch.cuda.device_count()]):
            torch.cuda.set_rng_state(stream, index)


@contextlib.contextmanager
def untouched() -> Iterator[None]:
    """Restores every stream after the block, so that what the block draws changes nothing later."""
    kept = capture()
    try:
        yield
    finally:
        restore(kept)


def _has_cuda() -> bool:
    return torch.cuda.is_available() and bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]
