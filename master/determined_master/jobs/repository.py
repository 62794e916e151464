"""SQL for jobs."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import bindparam, select

from determined.errors import BadRequest, NotFound
from determined_master import notifications
from determined_master.db.models import JobRow, UserRow
from determined_master.db.session import ReadSession, WriteSession, note, notify
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import update_rows
from determined_master.jobs.followers_repository import follow

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
    row = await session.get(JobRow, job_id)
    if row is None:
        raise NotFound(f"job '{job_id}' not found")
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
        raise NotFound(f"job '{job_id}' of user '{user_id}' not found")
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
    """Updates columns of a job; its pending allocations follow a new priority or position, others keep their slots."""
    await change_many(session, {job_id: values})


async def change_many(session: WriteSession, changes: Mapping[str, Mapping[str, object]]) -> None:
    """Updates columns of several jobs, see ``change``."""
    by_columns: dict[tuple[str, ...], list[dict[str, object]]] = defaultdict(list)
    for job_id, values in changes.items():
        by_columns[tuple(sorted(values))].append({"id": job_id, **values})
    for columns, rows in by_columns.items():
        await update_rows(session, JobRow, [{name: row[name] for name in ("id", *columns)} for row in rows])
    moved = [job_id for job_id, values in changes.items() if not {"priority", "position"}.isdisjoint(values)]
    if moved and not await follow(session, moved):
        notify(session, notifications.JOBS)  # a loop goes on with the others (loops/job_followers.py)
    note(session, "jobs", changes)
    notify(session, notifications.SCHEDULE, notifications.CLUSTER)
