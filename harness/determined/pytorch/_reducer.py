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
    """Selects how values of several batches become one value: average, sum, maximum or minimum."""

    AVG = 1
    SUM = 2
    MAX = 3
    MIN = 4


class MetricReducer(abc.ABC):
    """Base class of metrics that are not averages of batches; ``context.wrap_reducer`` passes it to the trainer.

    Checkpoints contain all attributes, unless the class has ``state_dict`` and ``load_state_dict``.
    """

    @abc.abstractmethod
    def reset(self) -> None:
        """Clears the collected values; runs before each training period and each validation."""

    @abc.abstractmethod
    def per_slot_reduce(self) -> Any:  # noqa: ANN401  # only the reducer's author knows its values
        """Returns the values of this slot as a picklable object."""

    @abc.abstractmethod
    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:  # noqa: ANN401  # only the reducer's author knows its values
        """Returns the metric for the values of all slots; a dictionary of metrics if the reducer has no name.

        Args:
            per_slot_metrics: what :meth:`per_slot_reduce` returned on each slot, in rank order.
        """


class SimpleMetricReducer(MetricReducer):
    """A metric that is one function of all values; add the values with ``update``.

    Args:
        function: receives the values of all batches and slots and returns the metric. None is for subclasses that
            override :meth:`cross_slot_reduce`.

    >>> reducer = SimpleMetricReducer(max)
    >>> reducer.update(1)
    >>> reducer.update(3)
    >>> reducer.cross_slot_reduce([reducer.per_slot_reduce()])
    3
    """

    def __init__(self, function: Callable[[list[Any]], Any] | None = None) -> None:
        self._function = function
        self.values: list[Any] = []

    def update(self, value: object) -> None:
        """Adds one value.

        Args:
            value: a picklable object.
        """
        self.values.append(value)

    def reset(self) -> None:
        """Removes all values."""
        self.values = []

    def per_slot_reduce(self) -> Any:  # noqa: ANN401  # only the reducer's author knows its values
        """Returns the values of this slot."""
        return self.values

    def cross_slot_reduce(self, per_slot_metrics: list[Any]) -> Any:  # noqa: ANN401  # only the reducer's author knows its values
        """Returns the function of all values.

        Args:
            per_slot_metrics: the values of each slot, in rank order.

        Raises:
            NotImplementedError: the reducer has no function.
        """
        values = [value for part in per_slot_metrics for value in part]
        if self._function is None:
            raise NotImplementedError("pass a function to SimpleMetricReducer, or override cross_slot_reduce")
        return self._function(values)

    def state_dict(self) -> dict[str, Any]:
        """Returns the values for a checkpoint; the function is not part of it."""
        return {"values": self.values}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the values.

        Args:
            state_dict: what :meth:`state_dict` returned.
        """
        self.values = list(state_dict["values"])


def reducer_state(reducer: MetricReducer) -> dict[str, Any]:
    """Returns the state of a reducer: the result of its ``state_dict``, or all its attributes that are data."""
    own = getattr(reducer, "state_dict", None)
    if own is not None:
        return copy.deepcopy(dict(own()))
    return copy.deepcopy({name: value for name, value in vars(reducer).items() if _is_data(value)})


def load_reducer_state(reducer: MetricReducer, state: dict[str, Any]) -> None:
    """Restores the state that :func:`reducer_state` returned."""
    state = copy.deepcopy(state)
    load = getattr(reducer, "load_state_dict", None)
    if load is not None:
        load(state)
    else:
        vars(reducer).update(state)


def _is_data(value: object) -> bool:
    """Returns False for contexts, models and functions; they belong to the code and are not saved with a reducer."""
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes, torch.Tensor)):
        return True
    if isinstance(value, dict):
        return all(_is_data(key) and _is_data(item) for key, item in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(_is_data(item) for item in value)
    return type(value).__module__ in ("numpy", "collections")


def plain_values(values: list[Any]) -> list[Any]:
    """Converts tensors and arrays to numbers (one element) or lists. Copies scalars of one device and type at once."""
    first = values[0]
    if isinstance(first, torch.Tensor) and first.dim() == 0:
        kind, device = first.dtype, first.device
        if all(isinstance(v, torch.Tensor) and v.dim() == 0 and v.dtype == kind and v.device == device for v in values):
            return list(torch.stack(values).tolist())
    return [plain_value(value) if hasattr(value, "tolist") else value for value in values]


def reduce_metric(name: str, values: list[Any], how: Reducer = Reducer.AVG) -> Any:  # noqa: ANN401  # only the reducer's author knows its values
    """Reduces the values of a metric to one. Raises ValueError with its name if they cannot be reduced."""
    try:
        return reduce_values(values, how)
    except ValueError as error:
        raise ValueError(f"metric {name!r}: {error}") from None


def reduce_values(values: list[Any], how: Reducer = Reducer.AVG) -> Any:  # noqa: ANN401  # only the reducer's author knows its values
    """Reduces values to one, lists element by element. Raises ValueError if the lists have different lengths.

    Averages and sums are exact to rounding, so that the partition of the values has no effect.

    >>> reduce_values([1.0, 2.0])
    1.5
    """
    if isinstance(values[0], (list, tuple)):
        lengths = sorted({len(value) if isinstance(value, (list, tuple)) else 1 for value in values})
        if len(lengths) > 1:
            raise ValueError(
                f"its values have different lengths ({lengths[0]} and {lengths[-1]}), so they cannot be reduced "
                "element by element; the last batch may be smaller: return one number per batch, or use "
                "context.wrap_reducer"
            )
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
