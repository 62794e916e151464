"""SQL for the job queue: jobs with allocations that have not ended, in the order of the queue."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import BigInteger, ColumnElement, case, cast, func, select
from sqlalchemy.orm import InstrumentedAttribute

from determined.states import AllocationState, ExperimentState, TaskKind
from determined_master.db.models import AllocationRow, ExperimentRow, JobRow, ProjectRow, TaskRow, UserRow
from determined_master.db.models.base import to_micros
from determined_master.db.session import ReadSession
from determined_master.db.statements.named_columns import columns_of
from determined_master.jobs.queue_order import QueuedJob

LIVE = [s for s in AllocationState if s.is_live]


class JobEntry(NamedTuple):
    """A job of the queue. Slots are counts."""

    job_id: str
    pool: str
    priority: int
    weight: float
    position: datetime
    kind: TaskKind
    """``TRIAL`` for an experiment."""
    user_id: int
    username: str
    experiment_id: int | None
    task_id: str
    """One of its tasks."""
    name: str
    submitted_at: datetime
    progress: float | None
    workspace_id: int
    requested_slots: int
    allocated_slots: int
    waiting: int
    """Number of its allocations that wait."""
    running: int

    @property
    def entity_id(self) -> str:
        return str(self.experiment_id) if self.kind is TaskKind.TRIAL else self.task_id


async def queue(session: ReadSession, pool: str) -> list[JobEntry]:
    """Returns the jobs of a pool that have allocations, first the one whose turn is first."""
    is_waiting = AllocationRow.state == AllocationState.PENDING
    live = (
        select(
            TaskRow.job_id.label("job_id"),
            func.max(TaskRow.kind).label("kind"),
            func.max(TaskRow.user_id).label("user_id"),
            func.max(TaskRow.experiment_id).label("experiment_id"),
            func.max(TaskRow.id).label("task_id"),
            func.max(TaskRow.description).label("description"),
            func.max(TaskRow.workspace_id).label("workspace_id"),
            func.min(TaskRow.created_at).label("created_at"),
            _total(AllocationRow.slots).label("requested"),
            _total(case((is_waiting, 0), else_=AllocationRow.slots)).label("allocated"),
            _total(case((is_waiting, 1), else_=0)).label("waiting"),
            _total(case((is_waiting, 0), else_=1)).label("running"),
        )
        .join(TaskRow, TaskRow.id == AllocationRow.task_id)
        .where(AllocationRow.state.in_(LIVE), AllocationRow.pool == pool)
        .group_by(TaskRow.job_id)
        .subquery()
    )
    query = (
        select(
            *columns_of(
                JobEntry,
                job_id=JobRow.id,
                pool=JobRow.pool,
                priority=JobRow.priority,
                weight=JobRow.weight,
                position=JobRow.position,
                kind=live.c.kind,
                user_id=live.c.user_id,
                username=UserRow.username,
                experiment_id=live.c.experiment_id,
                task_id=live.c.task_id,
                name=func.coalesce(ExperimentRow.name, live.c.description),
                submitted_at=func.coalesce(ExperimentRow.start_time, live.c.created_at),
                progress=ExperimentRow.progress,
                workspace_id=func.coalesce(ProjectRow.workspace_id, live.c.workspace_id, 1),
                requested_slots=live.c.requested,
                allocated_slots=live.c.allocated,
                waiting=live.c.waiting,
                running=live.c.running,
            )
        )
        .join(live, live.c.job_id == JobRow.id)
        .join(UserRow, UserRow.id == live.c.user_id)
        .outerjoin(ExperimentRow, ExperimentRow.job_id == JobRow.id)
        .outerjoin(ProjectRow, ProjectRow.id == ExperimentRow.project_id)
        .order_by(JobRow.priority, JobRow.position, JobRow.id)
    )
    return [JobEntry._make(row) for row in (await session.execute(query)).all()]


def _total(column: ColumnElement[int] | InstrumentedAttribute[int]) -> ColumnElement[int]:
    """Returns a sum as a whole number: that of PostgreSQL is a decimal one."""
    return cast(func.sum(column), BigInteger)


async def order(session: ReadSession, pool: str) -> list[QueuedJob]:
    """Returns the places of the jobs of a pool that have allocations."""
    return [
        QueuedJob(each.job_id, each.user_id, each.priority, to_micros(each.position))
        for each in await queue(session, pool)
    ]


async def owners(session: ReadSession, job_ids: Collection[str]) -> dict[str, int]:
    """Returns the owner of each job; unknown jobs and those of deleted experiments are absent."""
    query = select(TaskRow.job_id, TaskRow.user_id).where(TaskRow.job_id.in_(job_ids)).distinct()
    of_tasks = {row.job_id: row.user_id for row in await session.execute(query)}
    query_of_experiments = select(ExperimentRow.job_id, ExperimentRow.user_id, ExperimentRow.state)
    experiments = (await session.execute(query_of_experiments.where(ExperimentRow.job_id.in_(job_ids)))).all()
    found = of_tasks | {row.job_id: row.user_id for row in experiments}
    deleted = {row.job_id for row in experiments if row.state is ExperimentState.DELETED}
    return {job_id: owner for job_id, owner in found.items() if job_id not in deleted}
