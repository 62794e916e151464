"""Moments of a trial that a curve or a timeline is marked with."""

from typing import Literal

from determined_master.wire.model import Time, Wire


class TrialMark(Wire):
    """``steps``: where on a curve it stands."""

    kind: Literal["restart", "pause", "checkpoint"]
    time: Time
    steps: int
    run_id: int
    text: str


class TrialMarks(Wire):
    marks: list[TrialMark]


class TimelineMark(Wire):
    trial_id: int
    time: Time
    kind: Literal["checkpoint", "restart", "pause", "activate", "created", "ended"]
    steps: int | None
    text: str
