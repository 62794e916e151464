"""SQL for the queue: pending and running allocations with what their jobs say about order and limits."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, func, select, type_coerce, update

from determined.states import AllocationState, ExitReason, TaskKind
from determined_master import notifications
from determined_master.db.base import table_of
from determined_master.db.models import AllocationRow, JobRow, TaskRow, TrialRow
from determined_master.db.prepared import Prepared
from determined_master.db.session import ReadSession, WriteSession, notify

RUNNING = [s for s in AllocationState if s.is_live and s is not AllocationState.PENDING]


class Queued(NamedTuple):
    """An allocation that has not ended, with its job. Seconds are since the epoch where nothing else is said."""

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
    placed_at: datetime | None
    trial_id: int | None
    experiment_id: int | None
    trial_progress: float | None
    """Progress of its trial, from 0 to 1; None if it is no trial."""
    trial_steps: int | None
    start_steps: int | None
    """Steps from which this attempt of the trial started."""
    state: AllocationState


_COLUMNS = (
    AllocationRow.id,
    AllocationRow.task_id,
    TaskRow.kind,
    TaskRow.job_id,
    AllocationRow.pool,
    AllocationRow.slots,
    AllocationRow.single_agent,
    AllocationRow.agent_id,
    AllocationRow.groups,
    JobRow.priority,
    JobRow.weight,
    JobRow.max_slots,
    JobRow.position,
    AllocationRow.created_at,
    AllocationRow.user_id,
    AllocationRow.waiting,
    AllocationRow.preempt_requested_at,
    AllocationRow.kill_requested_at,
    AllocationRow.preempted_for,
    AllocationRow.placed_at,
    TrialRow.id,
    TrialRow.experiment_id,
    TrialRow.progress,
    TrialRow.steps_completed,
    TrialRow.run_start_steps,
    AllocationRow.state,
)


_ROWS = table_of(AllocationRow)
_SET_WAITING: Prepared[()] = Prepared(
    update(_ROWS)
    .where(_ROWS.c.id == bindparam("of_id"), _ROWS.c.state == AllocationState.PENDING)
    .values(waiting=bindparam("text"))
)


_POOLS_WITH_PENDING = Prepared(
    select(AllocationRow.pool).where(AllocationRow.state == AllocationState.PENDING).distinct()
)


async def pools_with_pending(session: ReadSession) -> Sequence[str]:
    """Returns the pools in which allocations wait, sorted by name."""
    return sorted(await _POOLS_WITH_PENDING.scalars(session))


class PoolQueue(NamedTuple):
    """The allocations of a pool that have not ended, in no order."""

    waiting: Sequence[Queued]
    running: Sequence[Queued]
    """Those that have been placed."""


async def of_pool(session: ReadSession, pool: str) -> PoolQueue:
    found = [Queued(*row) for row in await _OF_POOL.rows(session, pool=pool)]
    is_pending = AllocationState.PENDING
    return PoolQueue([q for q in found if q.state is is_pending], [q for q in found if q.state is not is_pending])


_OF_POOL = Prepared(
    select(*_COLUMNS)
    .join(TaskRow, TaskRow.id == AllocationRow.task_id)
    .join(JobRow, JobRow.id == TaskRow.job_id)
    .outerjoin(TrialRow, TrialRow.task_id == TaskRow.id)
    .where(AllocationRow.state.in_([AllocationState.PENDING, *RUNNING]), AllocationRow.pool == bindparam("pool"))
)


async def set_waiting(session: WriteSession, reasons: Sequence[tuple[Queued, str]]) -> None:
    """Stores why allocations wait, in one statement. Allocations that are no longer pending are unchanged."""
    if not reasons:
        return
    rows = [{"of_id": each.id, "text": text} for each, text in reasons]
    await _SET_WAITING.execute(session, rows)
    notify(session, notifications.CLUSTER, *(notifications.task(each.task_id) for each, _ in reasons))


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
        select(AllocationRow.state, func.count())
        .where(AllocationRow.state.in_([AllocationState.PENDING, *RUNNING]), AllocationRow.pool == pool)
        .group_by(AllocationRow.state)
    )
    found = {state: int(number) for state, number in (await session.execute(query)).all()}
    waiting = found.pop(AllocationState.PENDING, 0)
    return waiting, sum(found.values())
