"""What a trial did when: one stretch after the other, from its creation to its end or to now."""

from typing import Annotated, Literal

from pydantic import Field

from determined_master.wire.model import Time, Wire

SegmentKind = Literal["queued", "starting", "running", "pausing", "paused", "backing_off", "stopping", "ended"]


class TimelineSegment(Wire):
    """``run_id`` 0: before the first attempt. ``to`` None: it lasts."""

    trial_id: int
    run_id: int
    kind: SegmentKind
    from_: Annotated[Time, Field(alias="from")]
    to: Time | None
    reason: str
