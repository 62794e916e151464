"""Metric reducers: combine values of many batches and slots into one metric."""

import abc
import copy
import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import torch

from determined.core._metric_values import plain_value


class Reducer(Enum):
    """How a metric of several batches becomes one value."""

    AVG = 1
    SUM = 2
    MAX = 3
    MIN = 4


class MetricReducer(abc.ABC):
    """A metric that is not an average of batches; ``context.wrap_reducer`` hands it to the trainer.

    All attributes are kept in checkpoints, unless ``state_dict`` and ``load_state_dict`` say what to keep.
    """

    @abc.abstractmethod
    def reset(self) -> None:
        """Before each span of training and each validation."""

    @abc.abstractmethod
    def per_slot_reduce(self) -> Any:
        """What this slot has seen, in picklable form."""

    @abc.abstractmethod
    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        """The metric from the values of all slots; a dictionary where the reducer has no name."""


class SimpleMetricReducer(MetricReducer):
    """Collects values and gives them all to one function."""

    def __init__(self, function: Callable[[list[Any]], Any] | None = None) -> None:
        self._function = function
        self.values: list[Any] = []

    def update(self, value: Any) -> None:
        """Adds one value."""
        self.values.append(value)

    def reset(self) -> None:
        """Forgets the values."""
        self.values = []

    def per_slot_reduce(self) -> Any:
        """The values."""
        return self.values

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:
        """The function over all values, slot by slot."""
        values = [value for part in per_slot_metrics for value in part]
        if self._function is None:
            raise NotImplementedError("give SimpleMetricReducer a function, or override cross_slot_reduce")
        return self._function(values)

    def state_dict(self) -> dict[str, Any]:
        """The values; the function belongs to the code."""
        return {"values": self.values}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back the values."""
        self.values = list(state_dict["values"])


def reducer_state(reducer: MetricReducer) -> dict[str, Any]:
    """What must be kept of a reducer: what it says itself, else all its attributes that are data."""
    own = getattr(reducer, "state_dict", None)
    if own is not None:
        return copy.deepcopy(dict(own()))
    return copy.deepcopy({name: value for name, value in vars(reducer).items() if _is_data(value)})


def load_reducer_state(reducer: MetricReducer, state: dict[str, Any]) -> None:
    """The reverse of :func:`reducer_state`."""
    state = copy.deepcopy(state)
    load = getattr(reducer, "load_state_dict", None)
    if load is not None:
        load(state)
    else:
        vars(reducer).update(state)


def _is_data(value: Any) -> bool:
    """Not a reference to the context, a model or a function, which belong to the code and would drag it along."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.Tensor)):
        return True
    if isinstance(value, dict):
        return all(_is_data(key) and _is_data(item) for key, item in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(_is_data(item) for item in value)
    return type(value).__module__ in ("numpy", "collections")


def plain_values(values: list[Any]) -> list[Any]:
    """Tensors and arrays as numbers (one element) or lists. Scalars of one device and type are copied at once."""
    first = values[0]
    if isinstance(first, torch.Tensor) and first.dim() == 0:
        kind, device = first.dtype, first.device
        if all(isinstance(v, torch.Tensor) and v.dim() == 0 and v.dtype == kind and v.device == device for v in values):
            return list(torch.stack(values).tolist())
    return [plain_value(value) if hasattr(value, "tolist") else value for value in values]


def reduce_values(values: list[Any], how: Reducer = Reducer.AVG) -> Any:
    """One value of many; averages and sums are exact to rounding, so that it does not matter how they were cut.

    >>> reduce_values([1.0, 2.0])
    1.5
    """
    if isinstance(values[0], (list, tuple)):
        return [reduce_values(list(column), how) for column in zip(*values, strict=True)]
    if not all(isinstance(value, (int, float)) for value in values):
        return values[-1]
    if how is Reducer.MAX:
        return max(values)
    if how is Reducer.MIN:
        return min(values)
    try:
        total = math.fsum(values)
    except (OverflowError, ValueError):
        total = float(sum(values))
    return total / len(values) if how is Reducer.AVG else total
