"""The cluster at one look: who holds which slot, who waits and why; who held what when, and how much was in use."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.dependencies import Read, TheMaster
from determined_master.wire.model import Time, Wire

router = APIRouter(prefix="/detent/cluster", tags=["detent"])

QueueState = Literal["STATE_QUEUED", "STATE_PULLING", "STATE_STARTING", "STATE_RUNNING", "STATE_STOPPING"]


class SlotHolder(Wire):
    allocation_id: str
    trial_id: int
    experiment_id: int
    experiment_name: str
    rank: int
    since: Time


class OverviewSlot(Wire):
    id: int
    type: str
    brand: str
    enabled: bool
    draining: bool
    held: SlotHolder | None


class OverviewAgent(Wire):
    id: str
    pool: str
    hostname: str
    version: str
    connected: bool
    enabled: bool
    draining: bool
    slots: list[OverviewSlot]


class QueueEntry(Wire):
    """``waiting``: why, in words; empty once it is placed. ``since``: when it asked for slots."""

    allocation_id: str
    trial_id: int
    experiment_id: int
    experiment_name: str
    username: str
    slots: int
    priority: int
    since: Time
    waiting: str
    state: QueueState


class ClusterOverview(Wire):
    """``queue``: who waits, in the order of the scheduler; then who holds slots."""

    now: Time
    agents: list[OverviewAgent]
    queue: list[QueueEntry]


class SlotHold(Wire):
    agent_id: str
    slot_id: int
    trial_id: int
    experiment_id: int
    experiment_name: str
    from_: Annotated[Time, Field(alias="from")]
    to: Time | None
    exit_reason: str | None


class SlotHolds(Wire):
    now: Time
    holds: list[SlotHold]


class UsageBucket(Wire):
    start: Time
    busy_slot_seconds: float
    seconds: float


class SlotUsage(Wire):
    """``slots``: how many there are now."""

    from_: Annotated[Time, Field(alias="from")]
    to: Time
    slots: int
    buckets: list[UsageBucket]


From = Annotated[datetime | None, Query(alias="from")]
To = Annotated[datetime | None, Query(alias="to")]


@router.get("/overview")
async def get_cluster_overview(_principal: Anyone, session: Read, master: TheMaster) -> ClusterOverview:
    raise NotImplementedYet


@router.get("/holds")
async def list_slot_holds(
    _principal: Anyone, session: Read, master: TheMaster, start: From = None, end: To = None
) -> SlotHolds:
    raise NotImplementedYet


@router.get("/usage")
async def get_slot_usage(
    _principal: Anyone,
    session: Read,
    master: TheMaster,
    start: From = None,
    end: To = None,
    buckets: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> SlotUsage:
    raise NotImplementedYet
