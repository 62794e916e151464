"""Reduces points for drawing: keeps extremes of equal intervals and values that are not finite. Pure.

A long series is thinned twice. First by place: each chunk of SIZE points, counted from the first report on, gives of
every ``factor`` points those that could matter; full chunks have that stored, so that the first step is a look-up.
Then by x. What comes out depends on the points and the question alone, never on what is packed already.
"""

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from determined_master.metric_series.series_points import Axis, Points

SIZE = 2048
FACTORS = (16, 64, 256, 1024)
BLOCKS_A_STRETCH = 4
"""Blocks per interval: with fewer, an interval would show extremes of its neighbour."""
_AXES: tuple[Axis, ...] = ("batches", "time", "epochs")


def factor_for(count: int, most: int) -> int:
    """Returns how many neighbours may be joined before ``count`` points are reduced to ``most``."""
    blocks = BLOCKS_A_STRETCH * max(1, (most - 2) // 2)
    return max((factor for factor in FACTORS if count >= factor * blocks), default=1)


def inside(points: Points, axis: Axis, start: float | None, end: float | None) -> Sequence[int]:
    """Returns the places of the points between ``start`` and ``end``, without those that have no x."""
    low = -math.inf if start is None else start
    high = math.inf if end is None else end
    xs = points.along(axis)
    if axis != "epochs" and _is_sorted(xs):
        return range(bisect_left(xs, low), bisect_right(xs, high))
    return [place for place, x in enumerate(xs) if low <= x <= high]


def reduce(points: Points, factor: int, places: Sequence[int] | None = None) -> Points:
    """Returns the extremes of each block of a chunk or of ``places``, and the first and the last on every axis."""
    if factor == 1:
        return points if places is None else points.take(places)
    if places is None:
        places = range(len(points))
        blocks: Iterator[Sequence[int]] = (places[i : i + factor] for i in range(0, len(places), factor))
    else:
        blocks = (list(block) for _, block in groupby(places, lambda place: place // factor))
    is_finite = math.isfinite(sum(points.values))
    values = points.values.tolist()
    kept = {place for block in blocks for place in _extremes(values, block, is_finite)}
    for axis in _AXES:
        if axis != "epochs" or points.has_epochs:
            kept.update(_ends(points.along(axis), places))
    return points.take(sorted(kept))


def thin(points: Points, axis: Axis, most: int) -> Points:
    """Returns at most ``most`` points, but always the ends and the extremes, ordered by x, then by report. Points
    without x are left out."""
    points = _ordered(points, axis)
    if len(points) <= most:
        return points
    return points.take(_chosen(points.along(axis), points.values, most))


def _ordered(points: Points, axis: Axis) -> Points:
    xs = points.along(axis)
    if axis == "epochs":
        there = [place for place, x in enumerate(xs) if x == x]
        if len(there) < len(xs):
            points = points.take(there)
            xs = points.along(axis)
    if _is_sorted(xs):
        return points
    return points.take(sorted(range(len(xs)), key=xs.__getitem__))


def _is_sorted(xs: "array[int] | array[float]") -> bool:
    # One list for both: equal objects are not compared by their values.
    numbers = xs.tolist()
    return sorted(numbers) == numbers


def _chosen(xs: "array[int] | array[float]", values: "array[float]", most: int) -> list[int]:
    is_finite = math.isfinite(sum(values))
    odd = 0 if is_finite else len({_kind(value) for value in values if not math.isfinite(value)})
    stretches = max(1, (most - 2) // (2 + odd))
    low, high, count = xs[0], xs[-1], len(xs)
    chosen = {0, count - 1}
    start = 0
    # As a list: an array makes an object of a number each time that it is looked at.
    numbers = values.tolist()
    for number in range(1, stretches + 1):
        share = number / stretches
        # Not low + share * (high - low), which may overflow.
        edge = low * (1 - share) + high * share
        stop = count if number == stretches else bisect_left(xs, edge, start)
        if stop > start:
            chosen.update(_extremes(numbers, range(start, stop), is_finite))
            start = stop
    return sorted(chosen)


def _extremes(values: Sequence[float], places: Sequence[int], is_finite: bool) -> Iterable[int]:
    """Returns the first minimum, the first maximum, and the first of each kind that is not finite."""
    if is_finite and isinstance(places, range):
        start, part = places.start, values[places.start : places.stop]
        return start + part.index(min(part)), start + part.index(max(part))
    extremes: dict[str, int] = {}
    for place in places:
        value = values[place]
        if not math.isfinite(value):
            extremes.setdefault(_kind(value), place)
            continue
        if "least" not in extremes or value < values[extremes["least"]]:
            extremes["least"] = place
        if "greatest" not in extremes or value > values[extremes["greatest"]]:
            extremes["greatest"] = place
    return extremes.values()


def _kind(value: float) -> str:
    return "nan" if value != value else "more" if value > 0 else "less"


def _ends(xs: "array[int] | array[float]", places: Sequence[int]) -> Iterable[int]:
    """Returns the first point with the smallest x and the last with the largest."""
    if len(places) == len(xs) and xs.typecode == "q" and len(xs):
        whole: list[float] = list(xs)
        return whole.index(min(whole)), len(whole) - 1 - whole[::-1].index(max(whole))
    there = [place for place in places if xs[place] == xs[place]]
    if not there:
        return ()
    return min(there, key=xs.__getitem__), max(there, key=lambda place: (xs[place], place))
