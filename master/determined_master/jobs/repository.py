"""SQL for jobs."""

from collections.abc import Collection
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select, update

from determined.errors import BadRequest, NotFound
from determined.states import AllocationState
from determined_master import notifications
from determined_master.db.models import AllocationRow, JobRow, TaskRow, UserRow
from determined_master.db.prepared import Prepared, get_row
from determined_master.db.queue_changes import note
from determined_master.db.session import ReadSession, WriteSession, notify

MIN_PRIORITY, MAX_PRIORITY = 1, 99


def check_range(priority: int) -> None:
    """Raises BadRequest for a priority out of range."""
    if not MIN_PRIORITY <= priority <= MAX_PRIORITY:
        raise BadRequest(f"a priority must be between {MIN_PRIORITY} and {MAX_PRIORITY}")


async def add(
    session: WriteSession,
    job_id: str,
    *,
    pool: str,
    priority: int,
    position: datetime,
    weight: float = 1.0,
    max_slots: int | None = None,
) -> None:
    session.add(JobRow(id=job_id, pool=pool, priority=priority, weight=weight, max_slots=max_slots, position=position))
    await session.flush()


async def get(session: ReadSession, job_id: str) -> JobRow:
    row = await get_row(session, JobRow, job_id)
    if row is None:
        raise NotFound(f"job {job_id} not found")
    return row


class Requester(NamedTuple):
    """For whom and where a job asks for slots."""

    username: str
    agent_user_group: dict[str, Any] | None
    pool: str
    priority: int
    position: datetime


async def requester(session: ReadSession, job_id: str, user_id: int) -> Requester:
    rows = await _REQUESTER.rows(session, job_id=job_id, user_id=user_id)
    if not rows:
        raise NotFound(f"job {job_id} of user {user_id} not found")
    return Requester(*rows[0])


_REQUESTER = Prepared(
    select(UserRow.username, UserRow.agent_user_group, JobRow.pool, JobRow.priority, JobRow.position)
    .join(JobRow, JobRow.id == bindparam("job_id"))
    .where(UserRow.id == bindparam("user_id"))
)


async def get_many(session: ReadSession, job_ids: Collection[str]) -> dict[str, JobRow]:
    """Returns jobs by id; unknown ids are absent."""
    rows = await session.scalars(select(JobRow).where(JobRow.id.in_(job_ids)))
    return {row.id: row for row in rows}


async def change(session: WriteSession, job_id: str, **values: object) -> None:
    """Updates columns of a job. A new priority or position also applies to its pending allocations; others keep their
    slots."""
    await session.execute(update(JobRow).where(JobRow.id == job_id).values(**values))
    copied = {"priority": "priority", "position": "submitted_at"}
    changed = {column: values[name] for name, column in copied.items() if name in values}
    if changed:
        tasks = select(TaskRow.id).where(TaskRow.job_id == job_id)
        pending = update(AllocationRow).where(
            AllocationRow.task_id.in_(tasks), AllocationRow.state == AllocationState.PENDING
        )
        await session.execute(pending.values(**changed))
    note(session, "jobs", [job_id])
    notify(session, notifications.SCHEDULE, notifications.CLUSTER)
