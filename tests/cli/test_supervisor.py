"""When a child of `det up` is started again: at once if it was well, later each time if it cannot start."""

import signal
from pathlib import Path

import pytest

from determined_cli.up.supervisor import AGAIN_SECONDS, MAX_BACKOFF_SECONDS, Child


@pytest.fixture
def child(tmp_path: Path) -> Child:
    return Child("master", ["true"], tmp_path / "log", announced=True)


def died(child: Child, at: float, *, ready: bool) -> float:
    """The delay after a death at this time."""
    child.was_ready = ready
    delay = child._delay(at)
    child.died_at = at
    return delay


def test_a_service_that_was_ready_is_restarted_after_a_short_fixed_delay(child: Child):
    assert died(child, 100, ready=True) == 0
    assert [died(child, 100 + 5 * n, ready=True) for n in range(1, 20)] == [AGAIN_SECONDS] * 19
    assert died(child, 300, ready=True) == 0


def test_a_service_that_cannot_start_is_retried_with_growing_delays(child: Child):
    delays = [died(child, 100 + n, ready=False) for n in range(8)]
    assert delays == sorted(delays)
    assert delays[0] < 1
    assert delays[-1] == MAX_BACKOFF_SECONDS
    died(child, 200, ready=True)
    assert died(child, 201, ready=False) == delays[0]


def test_a_service_that_was_ready_is_started_in_the_turn_that_sees_its_death(tmp_path: Path):
    """`det up` is back after `kill -9` as soon as a master can start; nothing is waited for first."""
    child = Child("master", ["sleep", "60"], tmp_path / "log", announced=True)
    said: list[str] = []
    child.start()
    try:
        child.was_ready = True
        assert child.process is not None
        first = child.process.pid
        child.signal(signal.SIGKILL)
        child.process.wait(30)
        assert child.tend(said.append)
        assert child.is_running
        assert child.process.pid != first
        assert "signal SIGKILL" in said[0]
    finally:
        child.signal(signal.SIGKILL)
        child.process.wait(30)
        assert child.process.stdout is not None
        child.process.stdout.close()
