"""The difference between an agent's clock and the master's: its warnings, and its effect on the first failure."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.link.messages import ContainerExit, RankExit
from determined_master.agents.clock_skew import MAX_SKEW_SECONDS, has_changed, skew_seconds, warning
from determined_master.allocations.observe import by_our_clock, first_failed

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_any_time_of_an_agent_gives_a_skew_that_fits_the_table(sent_at: float) -> None:
    skew = skew_seconds(sent_at, NOW)
    assert skew == 0 or MAX_SKEW_SECONDS <= abs(skew) < 2**31
    assert bool(warning("one", skew)) == bool(skew)


@given(st.integers(-(10**6), 10**6))
def test_the_skew_is_positive_if_the_agents_clock_is_ahead(seconds: int) -> None:
    skew = skew_seconds(NOW.timestamp() + seconds, NOW)
    assert skew == (seconds if abs(seconds) > MAX_SKEW_SECONDS else 0)
    assert not has_changed(skew, skew)


@pytest.mark.parametrize(
    ("skew", "expected"),
    [(7, "7 s ahead of"), (-61, "1 min 1 s behind"), (3660, "1 h 1 min ahead"), (90_000, "1 d 1 h")],
)
def test_the_warning_names_the_size_of_the_clock_skew(skew: int, expected: str) -> None:
    assert expected in warning("one", skew)


def test_the_first_failure_is_found_after_correcting_clock_skew() -> None:
    def failed(name: str, time: float) -> ContainerExit:
        return ContainerExit(
            kind="exited", code=1, message=name, ranks=[RankExit(rank=0, code=1, time=time), RankExit(rank=1)]
        )

    cause, victim_behind = failed("cause", 1000.0), failed("victim", 1010.0 - 3600)
    first = first_failed([by_our_clock(cause, 0), by_our_clock(victim_behind, -3600)])
    assert first is not None
    assert first.message == "cause"
    assert by_our_clock(cause, 5).ranks[1].time == 0
