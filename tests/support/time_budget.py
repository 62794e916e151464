"""Time budget of each test: 5 s, 30 s in ``tests/e2e``. A test that needs more says so, with the reason, beside itself:
``@pytest.mark.budget(60, "trains twelve models")``."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.support.postgresql import VARIABLE

SECONDS = 5.0
SECONDS_OF_E2E = 30.0
FACTOR_OF_POSTGRESQL = 2
"""Every statement is a message to another process there."""
_E2E = Path(__file__).parents[1] / "e2e"


_open = open  # a test may replace it, and its report is made while it is replaced
_WAITED_BEFORE = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Notes for how long processes of this machine have waited for a core so far."""
    item.stash[_WAITED_BEFORE] = seconds_of_waiting()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fails a test that passed but exceeded its budget. Setup and teardown do not count: fixtures are shared."""
    report = yield
    if call.when == "call" and report.passed and item.get_closest_marker("long") is None:
        seconds = budget(item)
        waited = seconds_of_waiting() - item.stash.get(_WAITED_BEFORE, 0.0)
        if call.duration > seconds * busyness(waited / call.duration):
            report.outcome = "failed"
            report.longrepr = (
                f"{item.nodeid} took {call.duration:.1f} s; its budget is {seconds:g} s. Make it quicker, or state the "
                'reason beside it: @pytest.mark.budget(SECONDS, "why")'
            )
    return report


def budget(item: pytest.Item) -> float:
    """Returns the seconds that a test may take on a quiet machine."""
    marker = item.get_closest_marker("budget")
    if marker is not None:
        seconds = float(marker.args[0])
    else:
        seconds = SECONDS_OF_E2E if item.path.is_relative_to(_E2E) else SECONDS
    return seconds * (FACTOR_OF_POSTGRESQL if VARIABLE in os.environ else 1)


def busyness(waiting: float) -> float:
    """Returns by how much other work slows a test down, at least 1: runnable processes per core in the last minute, and
    ``waiting``, the part of the test's time in which some process waited for a core, since that mean knows a burst only
    when it is over."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1)) * (1 + min(1.0, max(0.0, waiting)))


def seconds_of_waiting() -> float:
    """Returns for how long some process of this machine has waited for a core since its start; 0 if Linux does not say."""
    try:
        with _open("/proc/pressure/cpu", encoding="ascii") as file:
            return int(file.readline().rpartition("total=")[2]) / 1e6
    except OSError:
        return 0.0
