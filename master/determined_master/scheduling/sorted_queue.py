"""A list that stays sorted. Adding at the end and removing the first are cheap, however long it is."""

from bisect import bisect_left, insort
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
MIN_GARBAGE = 512


class SortedQueue(Generic[Value]):
    """``entries`` from ``first`` on are pairs of key and value in ascending order of keys, which are unique."""

    __slots__ = ("entries", "first")

    def __init__(self) -> None:
        self.entries: list[tuple[Any, Value]] = []
        self.first = 0

    def __len__(self) -> int:
        return len(self.entries) - self.first

    def __iter__(self) -> Iterator[Value]:
        for place in range(self.first, len(self.entries)):
            yield self.entries[place][1]

    def descending(self) -> Iterator[tuple[Any, Value]]:
        """Yields keys and values, the last first."""
        for place in range(len(self.entries) - 1, self.first - 1, -1):
            yield self.entries[place]

    def add(self, key: tuple[Any, ...], value: Value) -> None:
        entries = self.entries
        if not entries or len(entries) == self.first or entries[-1][0] < key:
            entries.append((key, value))
        else:
            insort(entries, (key, value), lo=self.first)

    def extend(self, pairs: list[tuple[Any, Value]]) -> None:
        """Adds many at once, which sorts once."""
        self.entries = sorted([*self.entries[self.first :], *pairs], key=itemgetter(0))
        self.first = 0

    def remove(self, key: tuple[Any, ...]) -> None:
        entries = self.entries
        place = self.first
        if entries[place][0] != key:
            del entries[bisect_left(entries, (key,), lo=place)]
            return
        self.remove_first()

    def remove_first(self) -> None:
        entries = self.entries
        self.first += 1
        if self.first > MIN_GARBAGE and 2 * self.first > len(entries):
            del entries[: self.first]
            self.first = 0

    def count_before(self, key: tuple[Any, ...]) -> int:
        return bisect_left(self.entries, (key,), lo=self.first) - self.first
