"""Restarts of the services of `det up`: at once after a healthy run, with growing delays if a service cannot start."""

import signal
import sys
from pathlib import Path

import pytest
from tests.support.waiting import wait_until

from determined_cli.up.supervisor import AGAIN_SECONDS, MAX_BACKOFF_SECONDS, Child, _how


@pytest.fixture
def child(tmp_path: Path) -> Child:
    return Child("master", ["true"], tmp_path / "log", announced=True)


def delay_after_death(child: Child, at: float, *, ready: bool) -> float:
    """Records a death at this time. Returns the delay before the restart."""
    child.was_ready = ready
    delay = child.restart_delay(at)
    child.died_at = at
    return delay


def test_a_service_that_was_ready_is_restarted_after_a_short_fixed_delay(child: Child):
    assert delay_after_death(child, 100, ready=True) == 0
    assert [delay_after_death(child, 100 + 5 * n, ready=True) for n in range(1, 20)] == [AGAIN_SECONDS] * 19
    assert delay_after_death(child, 300, ready=True) == 0


def test_a_service_that_cannot_start_is_retried_with_growing_delays(child: Child):
    delays = [delay_after_death(child, 100 + n, ready=False) for n in range(8)]
    assert delays == sorted(delays)
    assert delays[0] < 1
    assert delays[-1] == MAX_BACKOFF_SECONDS
    delay_after_death(child, 200, ready=True)
    assert delay_after_death(child, 201, ready=False) == delays[0]


def test_what_a_service_prints_after_its_announcement_goes_to_its_log(tmp_path: Path):
    script = "print('ready: here', flush=True); print('x' * 200_000); print('end', flush=True)"
    child = Child("master", [sys.executable, "-c", script], tmp_path / "log", announced=True)
    child.start()
    assert child.process is not None
    assert child.announcement("ready: ", 30) == "here"
    assert child.process.wait(30) == 0
    wait_until(lambda: child.log.read_text().endswith("end\n"), what="the log is complete")
    assert child.process.stdout is not None
    child.process.stdout.close()


def test_the_end_by_a_signal_without_a_name_is_described():
    assert [_how(code) for code in (1, -9, -60)] == ["exit 1", "signal SIGKILL", "signal 60"]


def test_tend_restarts_a_dead_service_that_was_ready_immediately(tmp_path: Path):
    """After ``kill -9``, `det up` waits for nothing before it restarts the master."""
    child = Child("master", ["sleep", "60"], tmp_path / "log", announced=True)
    messages: list[str] = []
    child.start()
    try:
        child.was_ready = True
        assert child.process is not None
        first = child.process.pid
        child.signal(signal.SIGKILL)
        child.process.wait(30)
        assert child.tend(messages.append)
        assert child.is_running
        assert child.process.pid != first
        assert "signal SIGKILL" in messages[0]
    finally:
        child.signal(signal.SIGKILL)
        child.process.wait(30)
        assert child.process.stdout is not None
        child.process.stdout.close()
