"""Lengths and periods of training, which can be converted to numbers of batches."""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True)
class TrainUnit:
    """A length or a period of training, in batches, epochs or records.

    Args:
        value: the number of units; for a period also a container of the exact points.

    Raises:
        ValueError: the number is negative.
        TypeError: the container cannot be iterated over.

    >>> Batch(100)
    Batch(value=100)
    """

    value: "int | Container[int]"

    def __post_init__(self) -> None:
        if isinstance(self.value, int) and self.value < 0:
            raise ValueError(f"{type(self).__name__}({self.value}): a length must not be negative")
        if not isinstance(self.value, (int, Iterable)):
            raise TypeError(f"{type(self).__name__}: the exact points must be a list, a set or a range")

    @property
    def number(self) -> int:
        """Returns the value as a length. Raises ValueError if the value is a container of points."""
        if not isinstance(self.value, int):
            raise ValueError(f"{type(self).__name__}: a length must be one number, not a list")
        return self.value


class Batch(TrainUnit):
    """A number of batches per slot."""


class Epoch(TrainUnit):
    """A number of passes over the training data."""


class Record(TrainUnit):
    """A number of single samples over all slots."""


def in_batches(unit: TrainUnit, *, epoch_length: int, global_batch_size: int | None = None) -> int:
    """Returns a length as a number of batches."""
    if isinstance(unit, Epoch):
        return unit.number * epoch_length
    if isinstance(unit, Record):
        if not global_batch_size:
            raise ValueError("a length in records needs the hyperparameter global_batch_size")
        return max(1, unit.number // global_batch_size) if unit.number else 0
    return unit.number


def next_due(
    unit: TrainUnit | None, steps: int, *, epoch_length: int, global_batch_size: int | None = None
) -> int | None:
    """Returns the first step after ``steps`` at which a period is due; None for never.

    >>> next_due(Batch(5), 5, epoch_length=3)
    10
    >>> next_due(Epoch([1, 4]), 5, epoch_length=3)
    12
    >>> next_due(Record([64, 640]), 1, epoch_length=3, global_batch_size=64)
    10
    """
    if unit is None:
        return None
    if isinstance(unit.value, int):
        period = in_batches(unit, epoch_length=epoch_length, global_batch_size=global_batch_size)
        return (steps // period + 1) * period if period else None
    points = [
        in_batches(type(unit)(point), epoch_length=epoch_length, global_batch_size=global_batch_size)
        for point in cast(Iterable[int], unit.value)
    ]
    return min((point for point in points if point > steps), default=None)


def from_config(value: Any, *, records_per_epoch: int, global_batch_size: int | None) -> TrainUnit | None:  # noqa: ANN401  # a value of a configuration
    """Returns a length of a configuration: ``{batches: n}``, ``{records: n}``, ``{epochs: n}`` or batches alone.

    With ``records_per_epoch``, which configurations of 2022 may set, it defines an epoch.
    """
    if value is None:
        return None
    if isinstance(value, int):
        return Batch(value)
    name, number = next((name, number) for name, number in value.items() if number is not None)
    if name == "epochs" and records_per_epoch and global_batch_size:
        return Batch(max(1, number * records_per_epoch // global_batch_size) if number else 0)
    kind: type[TrainUnit] = {"batches": Batch, "records": Record, "epochs": Epoch}[name]
    return kind(int(number))
