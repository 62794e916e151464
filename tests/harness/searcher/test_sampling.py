"""Sampling of hyperparameters within their ranges, and the points of a grid."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.searcher.sampling import grid_point, grid_size, sample

numbers = st.floats(-1e6, 1e6)
names = st.sampled_from(list("abcdef"))


def grid(hparams):
    return [grid_point(hparams, index) for index in range(grid_size(hparams))]


@st.composite
def ranges(draw: st.DrawFn) -> dict[str, Any]:
    count = draw(st.integers(1, 4))
    kind = draw(st.sampled_from(["int", "double", "log", "categorical", "const"]))
    if kind == "const":
        return {"type": kind, "val": draw(st.integers())}
    if kind == "categorical":
        return {"type": kind, "vals": draw(st.lists(st.integers(), min_size=1, max_size=4))}
    if kind == "int":
        first = draw(st.integers(-1000, 1000))
        return {"type": kind, "minval": first, "maxval": first + draw(st.integers(1, 50)), "count": count}
    low, width = draw(st.floats(-5, 4)), draw(st.floats(0.001, 3))
    return {"type": kind, "minval": low, "maxval": low + width, "base": 10.0, "count": count}


groups = st.recursive(
    st.dictionaries(names, ranges(), max_size=3), lambda inner: st.dictionaries(names, inner, max_size=2), max_leaves=3
)


def holds(hparam: dict[str, Any], value: Any, *, closed: bool) -> bool:
    if "type" not in hparam:
        return set(value) == set(hparam) and all(holds(hparam[name], value[name], closed=closed) for name in hparam)
    kind = hparam["type"]
    if kind == "const":
        return bool(value == hparam["val"])
    if kind == "categorical":
        return value in hparam["vals"]
    low, high = hparam["minval"], hparam["maxval"]
    if kind == "int":
        return isinstance(value, int) and low <= value <= high
    if kind == "log":
        low, high = hparam["base"] ** low, hparam["base"] ** high
    return isinstance(value, float) and low <= value and (value <= high if closed or kind == "log" else value < high)


@given(groups, st.integers(0, 2**32))
def test_samples_are_in_range_and_repeat_with_the_seed(hparams: dict[str, Any], seed: int) -> None:
    value = sample(hparams, random.Random(seed))
    assert holds(hparams, value, closed=False)
    assert sample(dict(reversed(hparams.items())), random.Random(seed)) == value


@given(groups)
def test_a_grid_has_its_announced_size_and_only_valid_points(hparams: dict[str, Any]) -> None:
    points = grid(hparams)
    assert len(points) == grid_size(hparams) >= 1
    assert all(holds(hparams, point, closed=True) for point in points)


def test_int_hyperparameters_of_a_grid_are_spread_evenly_with_both_ends() -> None:
    def axis(low: int, high: int, count: int) -> list[int]:
        return [point["n"] for point in grid({"n": {"type": "int", "minval": low, "maxval": high, "count": count}})]

    assert axis(0, 10, 3) == [0, 5, 10]
    assert axis(1, 3, 10) == [1, 2, 3]
    assert axis(-3, 0, 1) == [-2]
    assert axis(2**62, 2**62 + 2, 3) == [2**62, 2**62 + 1, 2**62 + 2]


def test_double_and_log_hyperparameters_are_spaced_evenly_in_a_grid() -> None:
    assert (grid({"x": {"type": "double", "minval": 0.0, "maxval": 1.0, "count": 1}})) == [{"x": 0.5}]
    assert (grid({"x": {"type": "log", "minval": -2, "maxval": 0, "base": 10, "count": 3}})) == [
        {"x": 0.01},
        {"x": 0.1},
        {"x": 1.0},
    ]
    assert (grid({})) == [{}]
    assert (grid({"g": {}})) == [{"g": {}}]


def test_a_point_of_a_huge_grid_is_computed_without_the_others() -> None:
    axis = {"type": "int", "minval": 0, "maxval": 299, "count": 300}
    huge = {"a": axis, "b": {"deep": axis}, "c": axis}
    assert grid_size(huge) == 27_000_000
    assert grid_point(huge, 0) == {"a": 0, "b": {"deep": 0}, "c": 0}
    assert grid_point(huge, 26_999_998) == {"a": 299, "b": {"deep": 299}, "c": 298}
    with pytest.raises(IndexError):
        grid_point(huge, 27_000_000)
