"""Slot-seconds of periods, compared with counting each second."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined_master.cluster.usage import busy_seconds, starts


def at(seconds: float) -> datetime:
    return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


SECONDS = st.integers(-50, 150)


@given(st.lists(st.tuples(SECONDS, SECONDS), max_size=20), st.integers(1, 13))
def test_busy_seconds_equal_the_overlap_of_spans_and_buckets(spans, buckets):
    busy = busy_seconds(spans, at(0), at(100), buckets)
    width = 100 / buckets
    for index in range(buckets):
        first, last = index * width, (index + 1) * width
        expected = sum(max(0.0, min(last, b) - max(first, a)) for a, b in spans)
        assert busy[index] == pytest.approx(expected, abs=1e-6)


def test_buckets_divide_the_time_range_evenly():
    assert starts(at(0), at(100), 4) == [at(0), at(25), at(50), at(75)]
