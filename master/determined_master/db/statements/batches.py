"""Splits values into batches: a statement takes a limited number of parameters, a transaction a limited time."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def batched(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yields slices of at most ``size`` values, in order.

    >>> list(batched([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    return (values[start : start + size] for start in range(0, len(values), size))
