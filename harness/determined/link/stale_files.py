"""Selects the files that a clean-up removes: those that are too old, and the oldest beyond a total size."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

MIN_AGE_SECONDS = 600.0
"""Age in seconds below which no file is removed for its size: it may be about to get a reference."""


class UnusedEntry(NamedTuple):
    """A file or folder without a reference. ``changed`` in seconds since the epoch."""

    name: str
    changed: float
    size: int


def stale(
    entries: Iterable[UnusedEntry], now: float, *, max_age: float, max_bytes: int, min_age: float = MIN_AGE_SECONDS
) -> Sequence[UnusedEntry]:
    """Returns the entries to remove, the oldest first. Pure.

    An entry is removed if it is older than ``max_age`` seconds, or older than ``min_age`` while it and the younger ones
    together have more than ``max_bytes``.
    """
    removed = []
    total = 0
    for entry in sorted(entries, key=lambda one: one.changed, reverse=True):
        total += entry.size
        age = now - entry.changed
        if age > max_age or (total > max_bytes and age > min_age):
            removed.append(entry)
    return removed[::-1]
