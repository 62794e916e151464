"""The summary of a trial's metrics: the fast path for plain reports gives the result of the general one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from determined_master.json_numbers import inward, is_plain, outward
from determined_master.metrics import summary

numbers = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.booleans())
names = st.sampled_from("abc")
plain = st.dictionaries(names, numbers)
anything = st.dictionaries(
    names, st.one_of(numbers, st.sampled_from(["NaN", "Infinity", "x", None]), st.lists(numbers))
)


@given(st.lists(st.one_of(plain, anything)))
def test_a_plain_report_is_added_as_any_other(reports: list[dict[str, Any]]) -> None:
    short: dict[str, Any] = {}
    long: dict[str, Any] = {}
    for metrics in reports:
        summary.add(short, "training", inward(metrics), is_plain=is_plain(metrics))
        summary.add(long, "training", inward(metrics))
    assert short == long
    assert [*short] == [*long]


@given(st.one_of(plain, anything))
def test_plain_values_are_the_same_in_json(metrics: dict[str, Any]) -> None:
    if is_plain(metrics):
        assert inward(metrics) == metrics == outward(metrics)
    else:
        assert any(type(value) not in (int, float, bool) for value in metrics.values())
