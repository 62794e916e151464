"""Running allocations that may be preempted, in the order in which they would leave."""

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from determined_master.scheduling.view import RunningView

Key = tuple[Any, ...]
MIN_GARBAGE = 512
NEAR = 16
"""Of so many keys at the end none is left that was removed while it was there: searches begin at the end."""


class Victims:
    """``_keys`` is in ascending order, so the worst is the last. The key of an allocation that was removed may stay
    there until it is the last one or most keys are such: to find it would take longer than to pass over it.
    ``running``: all running allocations by id; those added are among them."""

    __slots__ = ("_key_of", "_keys", "_running")

    def __init__(self, running: Mapping[str, RunningView]) -> None:
        self._running = running
        self._keys: list[Key] = []
        self._key_of: dict[str, Key] = {}
        """The very object in ``_keys``: an equal one may be left there of the same allocation."""

    def __len__(self) -> int:
        return len(self._key_of)

    def add(self, running: RunningView) -> None:
        keys, key = self._keys, running.key
        self._key_of[running.allocation_id] = key
        if not keys or keys[-1] < key:
            keys.append(key)
        else:
            insort(keys, key)

    def remove(self, allocation_id: str) -> None:
        keys, key_of = self._keys, self._key_of
        key = key_of.pop(allocation_id)
        if len(keys) <= NEAR or keys[-NEAR] < key:
            del keys[bisect_left(keys, key, max(0, len(keys) - NEAR))]
        if len(keys) > 2 * len(key_of) + MIN_GARBAGE:
            self._keys = [key for key in keys if key_of.get(key[-1]) is key]

    def worst_rank(self) -> Key | None:
        """Returns the rank of the one that would leave first; None if there is none."""
        keys, key_of = self._keys, self._key_of
        while keys:
            key = keys[-1]
            if key_of.get(key[-1]) is key:
                return key[:-1]
            keys.pop()
        return None

    def worse_than(self, rank: Key, without: Collection[str] = ()) -> Iterator[RunningView]:
        """Yields those of a worse rank, the worst first; all of them if the rank is ``()``."""
        key_of, running = self._key_of, self._running
        for key in reversed(self._keys):
            allocation_id = key[-1]
            if key_of.get(allocation_id) is key:
                if key[:-1] <= rank:
                    return
                if allocation_id not in without:
                    yield running[allocation_id]

    def hold(self, slots: int, rank: Key, without: Collection[str]) -> bool:
        """Returns True if those of a worse rank hold so many slots, or more."""
        key_of, running = self._key_of, self._running
        for key in reversed(self._keys):
            allocation_id = key[-1]
            if key_of.get(allocation_id) is key:
                if key[:-1] <= rank:
                    break
                if allocation_id not in without:
                    slots -= running[allocation_id].slots
                    if slots <= 0:
                        return True
        return False
