"""A list that stays sorted. Adding at the end and removing the first are cheap, however long it is."""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
MIN_GARBAGE = 512


class SortedQueue(Generic[Value]):
    """``keys`` from ``first`` on are unique and in ascending order; ``values`` holds the value of each in its place.
    They are two lists so that a search compares nothing but keys."""

    __slots__ = ("first", "keys", "values")

    def __init__(self) -> None:
        self.keys: list[tuple[Any, ...]] = []
        self.values: list[Value] = []
        self.first = 0

    def __len__(self) -> int:
        return len(self.keys) - self.first

    def __iter__(self) -> Iterator[Value]:
        return islice(self.values, self.first, None)

    def add(self, key: tuple[Any, ...], value: Value) -> None:
        keys = self.keys
        if len(keys) == self.first or keys[-1] < key:
            keys.append(key)
            self.values.append(value)
            return
        place = bisect_left(keys, key, self.first)
        keys.insert(place, key)
        self.values.insert(place, value)

    def extend(self, pairs: list[tuple[Any, Value]]) -> None:
        """Adds many at once, which sorts once."""
        present = zip(self.keys[self.first :], self.values[self.first :], strict=True)
        ordered = sorted([*present, *pairs], key=itemgetter(0))
        self.keys = [key for key, _ in ordered]
        self.values = [value for _, value in ordered]
        self.first = 0

    def remove(self, key: tuple[Any, ...]) -> None:
        place = bisect_left(self.keys, key, self.first)
        if place == self.first:
            self.remove_first()
        else:
            del self.keys[place], self.values[place]

    def remove_first(self) -> None:
        self.first += 1
        if self.first > MIN_GARBAGE and 2 * self.first > len(self.keys):
            del self.keys[: self.first], self.values[: self.first]
            self.first = 0

    def count_before(self, key: tuple[Any, ...]) -> int:
        return bisect_left(self.keys, key, self.first) - self.first
