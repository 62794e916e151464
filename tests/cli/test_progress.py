"""The progress line, and the output of other lines around it."""

import io

import pytest

from determined_cli.experiment.follow import StatusLine
from determined_cli.experiment.progress import Pace, Stretch, TrialProgress

FACTS = {
    "state": "STATE_RUNNING",
    "progress": 0.25,
    "steps": 50,
    "bestMetric": 0.5,
    "metricName": "loss",
    "waiting": None,
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, "[######------------------]  25% 50 steps 5/s 0:30 to go loss 0.5"),
        ({"waiting": "no agent has 8 slots"}, "waiting: no agent has 8 slots"),
        ({"progress": "NaN", "bestMetric": "NaN"}, "[------------------------]   0% 50 steps 5/s loss nan"),
        ({"progress": None, "bestMetric": None}, "[------------------------]   0% 50 steps 5/s"),
        ({"progress": 1.5, "state": "STATE_COMPLETED"}, f"[{'#' * 24}] 100% 50 steps 5/s loss 0.5 completed"),
        ({"steps": 0, "progress": 0}, "[------------------------]   0% 0 steps 5/s loss 0.5"),
        ({"progress": 0.00001}, "[------------------------]   0% 50 steps 5/s 0:39 to go loss 0.5"),
    ],
)
def test_a_progress_line_shows_bar_steps_rate_and_loss(change: dict[str, object], expected: str) -> None:
    assert TrialProgress.from_wire({**FACTS, **change}).render(Pace(5.0, 0.025)) == expected


def test_the_pace_is_of_the_present_stretch_of_training() -> None:
    """Neither the time in the queue nor a pause counts."""
    stretch = Stretch()

    def look(steps: int, now: float, **change: object) -> Pace | None:
        facts = {**FACTS, "steps": steps, "progress": steps / 1000, **change}
        return stretch.pace(TrialProgress.from_wire(facts), now)

    assert look(0, 0, waiting="no agent has 8 slots") is None
    assert look(0, 1000) is None
    assert look(100, 1010) == Pace(10.0, 0.01)
    assert look(100, 5000, state="STATE_PAUSED") is None
    assert look(100, 9000) is None
    assert look(200, 9020) == Pace(5.0, 0.005)


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
