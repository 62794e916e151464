"""Marks of a trial for curves and timelines: pauses, restarts, checkpoints. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from determined.states import TrialState, state_phrase
from determined_master.api.schemas.base import Time, Wire
from determined_master.trials.timeline import History

MarkKind = Literal["checkpoint", "restart", "pause", "activate", "created", "ended"]
CurveMarkKind = Literal["restart", "pause", "checkpoint"]
MAX_REASON_LENGTH = 200


class TrialMark(Wire):
    """``steps``: position on a curve. ``until``: end of a pause; None while it lasts."""

    kind: CurveMarkKind
    time: Time
    until: Time | None = None
    steps: int
    run_id: int
    text: str


class TrialMarks(Wire):
    marks: list[TrialMark]


class TimelineMark(Wire):
    trial_id: int
    time: Time
    kind: MarkKind
    steps: int | None
    text: str


@dataclass(frozen=True)
class Moment:
    kind: MarkKind
    time: datetime
    text: str
    run_id: int = 0
    steps: int | None = None


def moments_of(history: History) -> list[Moment]:
    """Returns the marks by time."""
    moments = [Moment("created", history.created, "created"), *_moves(history), *_restarts(history)]
    moments += [
        Moment("checkpoint", each.time, f"checkpoint at step {each.steps}", each.run_id, each.steps)
        for each in history.saved
    ]
    if history.state.is_terminal and history.ended is not None:
        state = state_phrase(history.state)
        why = f": {history.reason.phrase}" if history.reason and history.reason.phrase != state else ""
        moments.append(Moment("ended", history.ended, f"{state}{why}"))
    return sorted(moments, key=lambda each: each.time)


def on_curve(moments: Sequence[Moment]) -> list[TrialMark]:
    """Requires ``moments`` in the order of time."""
    marks = []
    for at, each in enumerate(moments):
        if each.kind not in ("restart", "pause", "checkpoint"):
            continue
        over = (after.time for after in moments[at:] if after.kind in ("activate", "ended"))
        until = next(over, None) if each.kind == "pause" else None
        steps = each.steps or 0
        mark = TrialMark(kind=each.kind, time=each.time, until=until, steps=steps, run_id=each.run_id, text=each.text)
        marks.append(mark)
    return marks


def on_timeline(trial_id: int, moments: Sequence[Moment]) -> list[TimelineMark]:
    return [
        TimelineMark(trial_id=trial_id, time=each.time, kind=each.kind, steps=each.steps, text=each.text)
        for each in moments
    ]


def _moves(history: History) -> list[Moment]:
    moments = []
    for move in history.moves:
        one, _ = history.try_at(move.time)
        run_id = one.run_id if one else 0
        if move.to is TrialState.PAUSED:
            # The curve stops at the checkpoint that was saved on leaving.
            left = one.ended if one is not None and one.ended is not None and one.ended > move.time else move.time
            moments.append(Moment("pause", move.time, f"paused by {move.actor}", run_id, history.steps_at(left)))
        elif move.to is TrialState.ACTIVE and move.start is TrialState.PAUSED:
            steps = history.steps_at(move.time)
            moments.append(Moment("activate", move.time, f"activated by {move.actor}", run_id, steps))
    return moments


def _restarts(history: History) -> list[Moment]:
    """One mark per attempt that follows a failed attempt. Resuming after a pause is not a restart."""
    moments = []
    for before, one in zip(history.tries, history.tries[1:], strict=False):
        if before.reason is None or before.reason.value in ("completed", "preempted", "killed"):
            continue
        words = before.failure or before.message.split("\n")[0] or before.reason.phrase
        text = f"restarted after attempt {before.run_id}: {words}"[:MAX_REASON_LENGTH]
        moments.append(Moment("restart", one.created, text, one.run_id, history.steps_at(one.created)))
    return moments
