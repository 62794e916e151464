"""The progress line, and the output of other lines around it."""

import io

import pytest

from determined_cli.experiment.follow import StatusLine
from determined_cli.experiment.progress import TrialProgress

FACTS = {
    "state": "STATE_RUNNING",
    "progress": 0.25,
    "steps": 50,
    "bestMetric": 0.5,
    "metricName": "loss",
    "startedAt": "1970-01-01T00:00:00Z",
    "waiting": None,
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "[######------------------]  25% 50 steps 5/s 0:30 to go loss 0.5"),
        ({"waiting": "no agent has 8 slots"}, "waiting: no agent has 8 slots"),
        ({"progress": "NaN", "bestMetric": "NaN"}, "[------------------------]   0% 50 steps 5/s loss nan"),
        ({"progress": None, "bestMetric": None, "startedAt": None}, "[------------------------]   0% 50 steps"),
        ({"progress": 1.5, "state": "STATE_COMPLETED"}, f"[{'#' * 24}] 100% 50 steps 5/s loss 0.5 completed"),
        ({"steps": 0, "progress": 0}, "[------------------------]   0% 0 steps loss 0.5"),
        ({"progress": 0.00001}, "[------------------------]   0% 50 steps 5/s 11d 13:46:29 to go loss 0.5"),
    ],
)
def test_a_progress_line_shows_bar_steps_rate_and_loss(change: dict[str, object], expected: str) -> None:
    assert TrialProgress.from_wire({**FACTS, **change}).render(10.0) == expected


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_progress_line_on_a_terminal_is_redrawn_below_other_output() -> None:
    terminal = Terminal()
    line = StatusLine(terminal, terminal)
    line.show("one")
    line.show("one")
    line.print("log\n")
    line.clear()
    assert terminal.getvalue() == "\rone\x1b[K\r\x1b[Klog\none\r\x1b[K"


def test_a_progress_line_without_a_terminal_prints_each_update_as_a_line() -> None:
    err, out = io.StringIO(), io.StringIO()
    line = StatusLine(err, out)
    line.show("one")
    line.print("log\n")
    line.clear()
    assert (err.getvalue(), out.getvalue()) == ("one\n", "log\n")
