"""SQL for the rendezvous: few columns, because every task asks it as it starts, and again with each change."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, select

from determined.states import AllocationState, ContainerState
from determined_master.db.models import AllocationRow, ContainerRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.prepared import Prepared


class MeetingAllocation(NamedTuple):
    """An allocation whose containers wait for each other."""

    id: str
    task_id: str
    user_id: int
    state: AllocationState
    ready_at: datetime | None


class MeetingContainer(NamedTuple):
    id: str
    agent_id: str
    rank: int
    slot_ids: list[int]
    state: ContainerState
    address: str


async def meeting_of(
    session: ReadSession, allocation_id: str
) -> tuple[MeetingAllocation, Sequence[MeetingContainer]] | None:
    """Returns an allocation with its containers by rank, or None if there is none. One that waits has no containers."""
    rows = await _MEETING.rows(session, allocation_id=allocation_id)
    if not rows:
        return None
    size = len(MeetingAllocation._fields)
    return MeetingAllocation(*rows[0][:size]), [MeetingContainer(*row[size:]) for row in rows if row[size] is not None]


_MEETING = Prepared(
    select(
        *(getattr(AllocationRow, name) for name in MeetingAllocation._fields),
        *(getattr(ContainerRow, name) for name in MeetingContainer._fields),
    )
    .outerjoin(ContainerRow, ContainerRow.allocation_id == AllocationRow.id)
    .where(AllocationRow.id == bindparam("allocation_id"))
    .order_by(ContainerRow.rank)
)
