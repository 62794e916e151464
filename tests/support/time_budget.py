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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fails a test that passed but exceeded its budget. Setup and teardown do not count: fixtures are shared."""
    report = yield
    if call.when == "call" and report.passed and item.get_closest_marker("long") is None:
        seconds = budget(item)
        if call.duration > seconds * busyness():
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


def busyness() -> float:
    """Returns by how much other work slows a test down: runnable processes per core in the last minute, at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
