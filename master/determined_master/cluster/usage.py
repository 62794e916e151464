"""Computes slot usage over time, in buckets. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta


def busy_seconds(spans: Iterable[tuple[float, float]], start: datetime, end: datetime, buckets: int) -> list[float]:
    """Returns the slot-seconds in each of ``buckets`` equal parts. ``spans``: start and end of each assignment in
    seconds from ``start``. One pass: full parts are counted by differences."""
    total = (end - start).total_seconds()
    width = total / buckets
    seconds = [0.0] * buckets
    whole = [0] * (buckets + 1)
    for since, until in spans:
        first, last = max(0.0, since), min(total, until)
        if last <= first:
            continue
        a, b = min(buckets - 1, int(first / width)), min(buckets - 1, int(last / width))
        if a == b:
            seconds[a] += last - first
            continue
        seconds[a] += (a + 1) * width - first
        seconds[b] += last - b * width
        whole[a + 1] += 1
        whole[b] -= 1
    through = 0
    for index in range(buckets):
        through += whole[index]
        seconds[index] += through * width
    return seconds


def starts(start: datetime, end: datetime, buckets: int) -> list[datetime]:
    return [start + timedelta(seconds=(end - start).total_seconds() * index / buckets) for index in range(buckets)]
