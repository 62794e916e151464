"""SQL for the queue: pending and running allocations with what their jobs say about order and limits."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, ColumnElement, bindparam, func, or_, select, type_coerce, update

from determined.states import AllocationState, ExitReason, TaskKind
from determined_master import notifications
from determined_master.db.models import AllocationRow, ContainerRow, JobRow, TaskRow, TrialRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.db.statements.named_columns import columns_of
from determined_master.db.statements.prepared import Prepared

MAX_START_NOTES = 10
RUNNING = [s for s in AllocationState if s.is_live and s is not AllocationState.PENDING]


class QueuedAllocation(NamedTuple):
    """An allocation that has not ended, with its job."""

    id: str
    task_id: str
    kind: TaskKind
    job_id: str
    pool: str
    slots: int
    single_agent: bool
    agent_id: str | None
    groups: list[Any] | None
    priority: int
    weight: float
    max_slots: int | None
    position: datetime
    """Place of the job in the queue among those of the same priority."""
    created_at: datetime
    user_id: int
    waiting: str
    preempt_requested_at: datetime | None
    kill_requested_at: datetime | None
    preempted_for: str | None
    trial_id: int | None
    experiment_id: int | None
    state: AllocationState


_QUEUED = (
    select(
        *columns_of(
            QueuedAllocation,
            id=AllocationRow.id,
            task_id=AllocationRow.task_id,
            kind=TaskRow.kind,
            job_id=TaskRow.job_id,
            pool=AllocationRow.pool,
            slots=AllocationRow.slots,
            single_agent=AllocationRow.single_agent,
            agent_id=AllocationRow.agent_id,
            groups=AllocationRow.groups,
            priority=JobRow.priority,
            weight=JobRow.weight,
            max_slots=JobRow.max_slots,
            position=JobRow.position,
            created_at=AllocationRow.created_at,
            user_id=AllocationRow.user_id,
            waiting=AllocationRow.waiting,
            preempt_requested_at=AllocationRow.preempt_requested_at,
            kill_requested_at=AllocationRow.kill_requested_at,
            preempted_for=AllocationRow.preempted_for,
            trial_id=TrialRow.id,
            experiment_id=TrialRow.experiment_id,
            state=AllocationRow.state,
        )
    )
    .join(TaskRow, TaskRow.id == AllocationRow.task_id)
    .join(JobRow, JobRow.id == TaskRow.job_id)
    .outerjoin(TrialRow, TrialRow.task_id == TaskRow.id)
)
_LIVE = AllocationRow.state.in_([AllocationState.PENDING, *RUNNING])
_ALL = Prepared(_QUEUED.where(_LIVE))
_OF_IDS = Prepared(_QUEUED.where(_LIVE, AllocationRow.id.in_(bindparam("allocation_ids", expanding=True))))


async def live(session: ReadSession, page: int) -> AsyncIterator[list[QueuedAllocation]]:
    """Yields all allocations that have not ended, in no order, ``page`` at a time."""
    async for rows in _ALL.pages(session, page):
        yield [QueuedAllocation(*row) for row in rows]


async def live_of(session: ReadSession, ids: Sequence[str]) -> list[QueuedAllocation]:
    """Returns those of the allocations that have not ended."""
    return [QueuedAllocation(*row) for row in await _OF_IDS.rows(session, allocation_ids=ids)]


_OF_JOBS = Prepared(
    select(AllocationRow.id)
    .join(TaskRow, TaskRow.id == AllocationRow.task_id)
    .where(_LIVE, TaskRow.job_id.in_(bindparam("job_ids", expanding=True)))
)


async def live_of_jobs(session: ReadSession, job_ids: Sequence[str], page: int) -> set[str]:
    """Returns the ids of the allocations of jobs that have not ended."""
    found: set[str] = set()
    async for rows in _OF_JOBS.pages(session, page, job_ids=job_ids):
        found.update(allocation_id for (allocation_id,) in rows)
    return found


class AttemptProgress(NamedTuple):
    """How far a trial has come in this attempt."""

    id: str
    experiment_id: int | None
    placed_at: datetime | None
    trial_progress: float | None
    """From 0 to 1; None if it is no trial."""
    trial_steps: int | None
    start_steps: int | None
    """Steps from which this attempt of the trial started."""


_PROGRESS = Prepared(
    select(AllocationRow.id, TrialRow.experiment_id, AllocationRow.placed_at)
    .add_columns(TrialRow.progress, TrialRow.steps_completed, TrialRow.run_start_steps)
    .join(TrialRow, TrialRow.task_id == AllocationRow.task_id)
    .where(AllocationRow.state.in_(RUNNING), AllocationRow.pool == bindparam("pool"))
)


async def progress(session: ReadSession, pool: str, page: int) -> dict[str, AttemptProgress]:
    """Returns how far the running trials of a pool have come, by allocation."""
    found: dict[str, AttemptProgress] = {}
    async for rows in _PROGRESS.pages(session, page, pool=pool):
        found.update((row[0], AttemptProgress(*row)) for row in rows)
    return found


_FIRST_PENDING = (
    select(AllocationRow)
    .where(AllocationRow.state == AllocationState.PENDING)
    .order_by(AllocationRow.priority, AllocationRow.submitted_at, AllocationRow.created_at, AllocationRow.id)
    .limit(1)
)


async def first_pending(
    session: ReadSession, *, job_id: str | None, task_ids: Collection[str]
) -> tuple[int, AllocationRow | None]:
    """Returns how many allocations of a job and of tasks wait, and the one that is expected to start first. They may be
    very many, so the database chooses."""
    concerned = _concerned(job_id, task_ids)
    count = select(func.count()).where(AllocationRow.state == AllocationState.PENDING, concerned)
    number = (await session.execute(count)).scalar_one()
    return number, (await session.scalars(_FIRST_PENDING.where(concerned))).first() if number else None


async def start_notes(session: ReadSession, *, job_id: str | None, task_ids: Collection[str]) -> list[str]:
    """Returns why starts of the live containers of a job and of tasks are slow, each reason once."""
    query = (
        select(ContainerRow.start_note)
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(
            AllocationRow.state.in_(RUNNING),
            _concerned(job_id, task_ids),
            ContainerRow.is_live(),
            ContainerRow.start_note != "",
        )
        .distinct()
        .order_by(ContainerRow.start_note)
        .limit(MAX_START_NOTES)
    )
    return list(await session.scalars(query))


def _concerned(job_id: str | None, task_ids: Collection[str]) -> ColumnElement[bool]:
    of_job = select(TaskRow.id).where(TaskRow.job_id == job_id)
    return or_(AllocationRow.task_id.in_(of_job), AllocationRow.task_id.in_(task_ids))


_ROWS = table_of(AllocationRow)
_SET_WAITING: Prepared[()] = Prepared(
    update(_ROWS)
    .where(_ROWS.c.id == bindparam("allocation"), _ROWS.c.state == AllocationState.PENDING)
    .values(waiting=bindparam("text"))
)


async def set_waiting(session: WriteSession, reasons: Mapping[str, str]) -> None:
    """Stores why allocations wait, by their ids, in one statement. Those that are no longer pending are unchanged."""
    if not reasons:
        return
    await _SET_WAITING.execute(session, [{"allocation": name, "text": text} for name, text in reasons.items()])
    notify(session, notifications.CLUSTER, *(notifications.task(name.rpartition(".")[0]) for name in reasons))


async def seconds_to_save(session: ReadSession, experiment_ids: Collection[int]) -> dict[int, float]:
    """Returns how long attempts of an experiment took from a preemption to their end, on average, by experiment.

    An experiment none of whose attempts has been preempted is missing.
    """
    duration = type_coerce(AllocationRow.ended_at, BigInteger) - type_coerce(
        AllocationRow.preempt_requested_at, BigInteger
    )
    query = (
        select(TrialRow.experiment_id, func.avg(duration))
        .join(AllocationRow, AllocationRow.task_id == TrialRow.task_id)
        .where(TrialRow.experiment_id.in_(experiment_ids), AllocationRow.exit_reason == ExitReason.PREEMPTED)
        .where(AllocationRow.preempt_requested_at.is_not(None))
        .group_by(TrialRow.experiment_id)
    )
    return {
        number: float(micros) / 1e6 for number, micros in (await session.execute(query)).all() if micros is not None
    }


async def counts(session: ReadSession, pool: str) -> tuple[int, int]:
    """Returns the numbers of pending and of running allocations of a pool."""
    query = (
        select(AllocationRow.state, func.count()).where(_LIVE, AllocationRow.pool == pool).group_by(AllocationRow.state)
    )
    found = {state: int(number) for state, number in (await session.execute(query)).all()}
    waiting = found.pop(AllocationState.PENDING, 0)
    return waiting, sum(found.values())
