"""Segments of a trial's timeline, from its creation to its end or to now. Pure."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from determined.states import TrialState
from determined_master.api.schemas.base import Time, Wire
from determined_master.trials.timeline import Attempt, History

SegmentKind = Literal["queued", "starting", "running", "pausing", "paused", "backing_off", "stopping", "ended"]
MAX_REASON_LENGTH = 200
NOTICED = timedelta(seconds=1)
"""A shorter gap before the next attempt does not count as back-off."""


class TimelineSegment(Wire):
    """``run_id`` 0: before the first attempt. ``to`` None: it is still open."""

    trial_id: int
    run_id: int
    kind: SegmentKind
    from_: Annotated[Time, Field(alias="from")]
    to: Time | None
    reason: str


def segments_of(history: History, now: datetime) -> list[TimelineSegment]:
    """Returns ascending segments without gaps and overlaps, whatever the clocks said."""
    now = max(now, history.created)
    times = sorted({t for t in history.moments if history.created <= t <= now} | {history.created})
    segments: list[TimelineSegment] = []
    for start, end in pairwise([*times, None]):
        assert start is not None
        run_id, kind, reason = _doing(history, start)
        last = segments[-1] if segments else None
        if last is not None and (last.run_id, last.kind, last.reason) == (run_id, kind, reason):
            last.to = end
        else:
            segments.append(
                TimelineSegment(trial_id=history.trial_id, run_id=run_id, kind=kind, from_=start, to=end, reason=reason)
            )
    return segments


def _doing(history: History, at: datetime) -> tuple[int, SegmentKind, str]:
    state = history.state_at(at)
    one, following = history.try_at(at)
    run_id = one.run_id if one else 0
    if state.is_terminal:
        return run_id, "ended", _why_failed(one) or (history.reason.phrase if history.reason else "")
    if one is not None and (one.ended is None or one.ended > at):
        return run_id, *_held(state, one, at)
    if state is TrialState.PAUSED:
        return run_id, "paused", ""
    if state.is_stopping:
        return run_id, "stopping", ""
    if one is None:
        return run_id, "queued", ""
    why = _why_ended(one)
    if one.reason is not None and one.reason.is_system_failure and one.ended is not None:
        again = following.created if following else history.retry_at
        if again is not None and again - one.ended >= NOTICED:
            return run_id, "backing_off", why
    return run_id, "queued", why


def _held(state: TrialState, one: Attempt, at: datetime) -> tuple[SegmentKind, str]:
    """Returns kind and reason of a segment while an attempt is live."""
    if state is TrialState.PAUSED:
        is_ready = one.ready is not None and one.ready <= at
        return "pausing", "waiting for checkpoint" if is_ready else "ending what has not started"
    if state.is_stopping:
        return "stopping", ""
    if one.leaving is not None and one.leaving <= at:
        return "stopping", one.message or "asked to release its slots"
    if one.ready is not None and one.ready <= at:
        return "running", ""
    if one.placed is not None and one.placed <= at:
        return "starting", ""
    return "queued", one.waiting


def _why_ended(one: Attempt) -> str:
    if one.reason is None or one.reason.value in ("completed", "preempted", "killed"):
        return ""
    return f"attempt {one.run_id} failed: {_why_failed(one) or one.reason.phrase}"[:MAX_REASON_LENGTH]


def _why_failed(one: Attempt | None) -> str:
    """Returns the cause; empty for an attempt that has not failed."""
    if one is None or one.reason is None or one.reason.value in ("completed", "preempted", "killed"):
        return ""
    return (one.failure or one.message.split("\n")[0])[:MAX_REASON_LENGTH]
