"""Thinning keeps extreme values, limits and order, and is deterministic."""

import math
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from determined_master.metric_series import downsampling
from determined_master.metric_series.downsampling import FACTORS, SIZE, factor_for, inside, reduce, thin
from determined_master.metric_series.series_points import Axis, Points, dump, load

AXES: tuple[Axis, ...] = ("batches", "time", "epochs")
VALUES = st.floats(width=64) | st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1e308, -1e308])
WHOLE = st.integers(-(2**62), 2**62) | st.integers(-5, 5)
EPOCHS = st.floats(allow_infinity=False) | st.just(math.nan)
PLAIN = st.floats(-1e6, 1e6)
ROWS = st.lists(st.tuples(WHOLE, WHOLE, EPOCHS, VALUES), max_size=300) | st.lists(
    st.tuples(st.integers(0, 1000), WHOLE, EPOCHS, PLAIN), min_size=30, max_size=300
)
"""Arbitrary rows, and ordinary rows that take the fast path and are enough to be thinned."""
MAX_POINTS = st.integers(10, 60)


def created(rows: list[tuple[int, int, float, float]]) -> Points:
    points = Points()
    for row in rows:
        points.add(*row)
    return points


def rows_of(points: Points) -> list[tuple[object, ...]]:
    """Returns comparable rows, with NaN and the sign of zero."""
    columns = (points.batches, points.times, points.epochs, points.values)
    return list(zip(*(map(repr, column) for column in columns), strict=True))


def line(count: int) -> Points:
    return Points(
        array("q", range(count)),
        array("q", range(0, count * 1000, 1000)),
        array("d", [math.nan]) * count,
        array("d", [math.sin(i / 50) for i in range(count)]),
    )


@given(ROWS, MAX_POINTS, st.sampled_from(AXES))
@settings(deadline=None)
def test_thinned_points_are_a_sorted_bounded_subset_and_repeatable(rows, most: int, axis: Axis):
    points = created(rows)
    thinned = thin(points, axis, most)
    assert len(thinned) <= most
    xs = list(thinned.along(axis))
    assert xs == sorted(xs)
    remaining = rows_of(points)
    for row in rows_of(thinned):
        remaining.remove(row)
    assert rows_of(thin(created(rows), axis, most)) == rows_of(thinned)


@given(ROWS, MAX_POINTS, st.sampled_from(AXES))
@settings(deadline=None)
def test_thinning_keeps_extremes_ends_and_non_finite_values(rows, most: int, axis: Axis):
    points = created(rows)
    on_axis = points.take([i for i, x in enumerate(points.along(axis)) if x == x])
    thinned = thin(points, axis, most)
    if not len(on_axis):
        assert not len(thinned)
        return
    for pick in (min, max):
        finite, thinned_values = ([v for v in p.values if math.isfinite(v)] for p in (on_axis, thinned))
        assert not finite or pick(finite) == pick(thinned_values)
        assert pick(on_axis.along(axis)) == pick(thinned.along(axis))
    for odd in ("nan", "inf", "-inf"):
        assert (odd in map(repr, on_axis.values)) == (odd in map(repr, thinned.values))


@given(ROWS, st.sampled_from(FACTORS), st.sampled_from(AXES))
@settings(deadline=None)
def test_a_reduced_chunk_keeps_extremes_and_ends(rows, factor: int, axis: Axis):
    points = created(rows)
    reduced = reduce(points, factor)
    assert set(rows_of(reduced)) <= set(rows_of(points))
    if rows:
        assert rows_of(thin(reduced, axis, 10_000))[:1] == rows_of(thin(points, axis, 10_000))[:1]
        assert rows_of(thin(reduced, axis, 10_000))[-1:] == rows_of(thin(points, axis, 10_000))[-1:]
    for pick in (min, max):
        finite, reduced_values = ([v for v in p.values if math.isfinite(v)] for p in (points, reduced))
        assert not finite or pick(finite) == pick(reduced_values)


@given(ROWS, st.sampled_from((1, *FACTORS)))
@settings(deadline=None)
def test_reducing_all_indices_equals_reducing_without_indices(rows, factor: int):
    points = created(rows)
    assert rows_of(reduce(points, factor, list(range(len(points))))) == rows_of(reduce(points, factor))


@given(ROWS)
@settings(deadline=None)
def test_dumped_points_are_loaded_unchanged(rows):
    assert rows_of(load(dump(created(rows)))) == rows_of(created(rows))


def test_batches_at_regular_intervals_take_no_space():
    assert len(dump(line(SIZE))) < 17 * SIZE


def test_thinning_keeps_one_outlier_in_a_long_series():
    points = line(SIZE)
    points.values[777] = 1e6
    points.values[778] = math.nan
    thinned = thin(reduce(points, 64), "batches", 20)
    assert 777 in thinned.batches
    assert 778 in thinned.batches


def test_thinning_keeps_a_peak_and_a_valley_of_a_long_series():
    points = line(SIZE)
    points.values[777] = 1e6
    points.values[1333] = -1e6
    for thinned in (thin(points, "batches", 20), thin(reduce(points, 64), "batches", 20)):
        assert {777, 1333} <= set(thinned.batches)


def test_few_points_are_not_thinned():
    assert rows_of(thin(line(500), "batches", 500)) == rows_of(line(500))
    assert len(thin(line(501), "batches", 500)) <= 500


def test_points_with_times_that_run_backwards_are_sorted():
    points = created([(1, 30, math.nan, 1.0), (2, 20, math.nan, 2.0), (3, 30, math.nan, 3.0)])
    assert list(thin(points, "time", 10).values) == [2.0, 1.0, 3.0]


@pytest.mark.parametrize(("count", "factor"), [(0, 1), (15_000, 1), (16_000, 16), (100_000, 64), (10**7, 1024)])
def test_stretches_are_never_coarser_than_blocks(count: int, factor: int):
    assert factor_for(count, 500) == factor
    assert factor == 1 or count / factor >= downsampling.BLOCKS_A_STRETCH * 249


def test_a_range_includes_both_ends():
    assert list(inside(line(10), "batches", 2, 4)) == [2, 3, 4]
    assert list(inside(line(3), "batches", None, None)) == [0, 1, 2]
    assert list(inside(line(3), "batches", 5, 1)) == []
    assert list(inside(line(3), "epochs", None, None)) == []
    jumbled = created([(3, 0, 0.0, 1.0), (1, 0, 0.0, 1.0), (2, 0, 0.0, 1.0)])
    assert list(inside(jumbled, "batches", 2, 3)) == [0, 2]
