"""SQL for allocations that follow their job: to its priority and place in the queue, and into its pool.

The job is the source; what differs from it has not followed yet. A lot follows in the transaction that changes the job,
the others in transactions of a loop (loops/job_followers.py), also after a crash.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select, update

from determined.states import AllocationState
from determined_master.db.models import AllocationRow, JobRow, TaskRow
from determined_master.db.session import ReadSession, WriteSession

FOLLOWERS_A_LOT = 2000
"""Pending allocations to which one transaction copies the place of their job."""
MAX_FOUND = 10_000
"""Allocations of one job that are found in one go, and then changed lot by lot."""
MAX_JOBS_A_LOT = 1000
MISPLACED_A_LOT = 250
"""Pending allocations that one transaction withdraws from the former pool of their job."""
MISPLACED_WITH_SLOTS_A_LOT = 25
"""Those that hold slots: each takes several statements, and its agents are told."""
_IS_PENDING = AllocationRow.state == AllocationState.PENDING
_LAGS_BEHIND = and_(
    _IS_PENDING, or_(AllocationRow.priority != JobRow.priority, AllocationRow.submitted_at != JobRow.position)
)
_LIVE = AllocationRow.state.in_([state for state in AllocationState if state.is_live])
_IS_MISPLACED = and_(
    _LIVE,
    AllocationRow.pool != JobRow.pool,
    AllocationRow.preempt_requested_at.is_(None),
    AllocationRow.kill_requested_at.is_(None),
)


class MisplacedAllocation(NamedTuple):
    """An allocation that is in another pool than its job, and was not asked to end."""

    allocation_id: str
    pool: str
    to: str
    """The pool of the job."""
    is_pending: bool


class JobsBehind(NamedTuple):
    """Jobs whose allocations have not all followed them."""

    in_place: list[str]
    in_pool: list[str]


async def follow(session: WriteSession, job_ids: Sequence[str]) -> bool:
    """Copies priority and position of jobs to a lot of those of their pending allocations that have others.

    Returns False if there may be more.
    """
    named = job_ids[:MAX_JOBS_A_LOT]
    done = await _copy(session, _lagging(TaskRow.job_id.in_(named)).limit(FOLLOWERS_A_LOT))
    return len(named) == len(job_ids) and done < FOLLOWERS_A_LOT


async def follow_these(session: WriteSession, allocation_ids: Sequence[str]) -> None:
    """Copies priority and position of their job to those of the allocations that still have others."""
    await _copy(session, _lagging(AllocationRow.id.in_(allocation_ids)))


async def lagging(session: ReadSession, job_id: str) -> Sequence[str]:
    """Returns pending allocations of a job that have not followed it, at most MAX_FOUND.

    Reads all of the job's, so it is no part of a transaction that writes: that would hold up other writes, the longer
    the more have followed.
    """
    return (await session.scalars(_lagging(TaskRow.job_id == job_id).limit(MAX_FOUND))).all()


def _lagging(condition: ColumnElement[bool]) -> Select[str]:
    query = select(AllocationRow.id).where(condition, _LAGS_BEHIND)
    return query.join(TaskRow, TaskRow.id == AllocationRow.task_id).join(JobRow, JobRow.id == TaskRow.job_id)


async def _copy(session: WriteSession, some: Select[str]) -> int:
    # A join, no second query inside: SQLAlchemy correlates with the statement that directly surrounds a query only.
    of_job = select(JobRow).join(TaskRow, TaskRow.job_id == JobRow.id).where(TaskRow.id == AllocationRow.task_id)
    new = (of_job.with_only_columns(column).scalar_subquery() for column in (JobRow.priority, JobRow.position))
    statement = update(AllocationRow).where(AllocationRow.id.in_(some)).values(dict(zip(_COPIES, new, strict=True)))
    # Returned rows would be fetched one by one, each waiting for a busy event loop.
    done = await session.execute(statement.execution_options(synchronize_session=False))
    return int(done.rowcount)  # type: ignore[attr-defined]


_COPIES = (AllocationRow.priority, AllocationRow.submitted_at)


async def behind(session: ReadSession) -> JobsBehind:
    result = await session.execute(
        select(JobRow.id, func.max(case((_LAGS_BEHIND, 1), else_=0)), func.max(case((_IS_MISPLACED, 1), else_=0)))
        .join(TaskRow, TaskRow.job_id == JobRow.id)
        .join(AllocationRow, AllocationRow.task_id == TaskRow.id)
        .where(_LIVE, or_(_LAGS_BEHIND, _IS_MISPLACED))
        .group_by(JobRow.id)
        .order_by(JobRow.id)
    )
    rows = result.all()
    return JobsBehind([row[0] for row in rows if row[1]], [row[0] for row in rows if row[2]])


async def misplaced(
    session: ReadSession, job_ids: Sequence[str], among: Sequence[str] = ()
) -> list[MisplacedAllocation]:
    """Returns a lot of the misplaced allocations of jobs. Those that wait come first: otherwise they would be
    placed on the slots that the others leave. ``among``: only of these."""
    query = (
        select(AllocationRow.id, AllocationRow.pool, JobRow.pool, AllocationRow.state)
        .join(TaskRow, TaskRow.id == AllocationRow.task_id)
        .join(JobRow, JobRow.id == TaskRow.job_id)
        .where(AllocationRow.id.in_(among) if among else TaskRow.job_id.in_(job_ids), _IS_MISPLACED)
    )
    rows = [*await session.execute(query.where(_IS_PENDING).limit(MISPLACED_A_LOT))]
    if len(rows) < MISPLACED_A_LOT:
        rows += await session.execute(query.where(~_IS_PENDING).limit(MISPLACED_WITH_SLOTS_A_LOT))
    return [MisplacedAllocation(id_, pool, to, state is AllocationState.PENDING) for id_, pool, to, state in rows]


async def misplaced_waiting(session: ReadSession, job_id: str) -> Sequence[str]:
    """Returns misplaced allocations of a job that wait, at most MAX_FOUND; see ``lagging``."""
    query = select(AllocationRow.id).where(TaskRow.job_id == job_id, _IS_MISPLACED, _IS_PENDING).limit(MAX_FOUND)
    query = query.join(TaskRow, TaskRow.id == AllocationRow.task_id).join(JobRow, JobRow.id == TaskRow.job_id)
    return (await session.scalars(query)).all()


def may_be_more(found: Sequence[MisplacedAllocation]) -> bool:
    """Returns True if ``found`` is a whole lot."""
    waiting = sum(each.is_pending for each in found)
    return waiting == MISPLACED_A_LOT or len(found) - waiting == MISPLACED_WITH_SLOTS_A_LOT
