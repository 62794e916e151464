"""Training metrics since the last report: collected without waiting for the device, part of every checkpoint."""

from typing import Any

import torch

from determined.pytorch._reducer import plain_values, reduce_metric

_FOLD_AT = 512  # limits the number of small tensors in memory


class TrainingMetrics:
    """Values of every batch by metric name."""

    def __init__(self) -> None:
        self._pending: list[dict[str, Any]] = []
        self._values: dict[str, list[Any]] = {}

    def add(self, output: object) -> None:
        """Adds what ``train_batch`` returned."""
        if isinstance(output, torch.Tensor):
            output = {"loss": output}
        elif not isinstance(output, dict):
            raise TypeError(
                f"train_batch must return a loss tensor or a dictionary of metrics, not {type(output).__name__}"
            )
        self._pending.append(
            {key: value.detach() if isinstance(value, torch.Tensor) else value for key, value in output.items()}
        )
        if len(self._pending) >= _FOLD_AT:
            self._fold()

    def values(self) -> dict[str, list[Any]]:
        """Returns all values so far as plain Python numbers."""
        self._fold()
        return self._values

    def load(self, values: dict[str, list[Any]]) -> None:
        """Restores what :meth:`values` returned."""
        self._pending = []
        self._values = {key: list(items) for key, items in values.items()}

    def reset(self) -> None:
        """Removes all values."""
        self._pending, self._values = [], {}

    def _fold(self) -> None:
        pending, self._pending = self._pending, []
        for key in dict.fromkeys(key for item in pending for key in item):
            found = [item[key] for item in pending if key in item]
            self._values.setdefault(key, []).extend(plain_values(found))


def averages(parts: list[dict[str, list[Any]]]) -> dict[str, Any]:
    """Returns the averages over the batches of all slots."""
    keys = dict.fromkeys(key for part in parts for key in part)
    return {key: reduce_metric(key, [value for part in parts for value in part.get(key, [])]) for key in keys}


def by_batch(values: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Returns one dictionary per batch."""
    count = max((len(items) for items in values.values()), default=0)
    return [{key: items[n] for key, items in values.items() if n < len(items)} for n in range(count)]
