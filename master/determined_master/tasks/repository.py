"""SQL for tasks."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from sqlalchemy import ColumnElement, and_, bindparam, func, or_, select
from sqlalchemy.orm import defer

from determined.errors import NotFound
from determined.states import ExperimentState, TaskKind, TaskState
from determined_master import notifications
from determined_master.allocations.environment_wait_repository import is_waiting
from determined_master.allocations.repository import LIVE
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ExperimentRow, TaskRow
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.db.statements.batches import batched
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import change_row
from determined_master.db.statements.sort_keys import directed
from determined_master.events import repository as events
from determined_master.events.state_machine import Event, StateMachine
from determined_master.tasks.states import ALLOWED

MAX_IDS_A_STATEMENT = 10_000
Order = Literal["id", "description", "created_at", "workspace_id"]
_LIVE = [s for s in TaskState if s.is_live]
_HAS_OPEN = (
    select(AllocationRow.id)
    .where(
        AllocationRow.task_id == TaskRow.id,
        or_(AllocationRow.state.in_(LIVE), AllocationRow.settled.is_(False)),
    )
    .exists()
)

MACHINE = StateMachine(
    "task",
    TaskRow,
    TaskRow.id,
    ALLOWED,
    describe=lambda row: {"reason": row.exit_reason.value if row.exit_reason else None},
    described=(TaskRow.exit_reason,),
)


class DueTask(NamedTuple):
    """A task that is to end, or that requests slots, not before ``retry_at``."""

    task_id: str
    state: TaskState | None
    retry_at: datetime | None


class TaskName(NamedTuple):
    """Kind and description of a task for short references."""

    kind: TaskKind
    description: str


class ReadyTask(NamedTuple):
    """A task whose attempt is ready."""

    task_id: str
    pool: str
    ready_at: datetime
    idle_timeout: float | None
    last_used_at: datetime | None


@dataclass(frozen=True)
class Selection:
    """Filter of tasks of one kind."""

    kind: TaskKind
    owners: Collection[int] | None = None
    """None: of any user. Empty: of no user."""
    workspace_id: int = 0

    def where(self) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = [TaskRow.kind == self.kind]
        if self.owners is not None:
            conditions.append(TaskRow.user_id.in_(self.owners))
        if self.workspace_id:
            conditions.append(TaskRow.workspace_id == self.workspace_id)
        return conditions


async def find(session: ReadSession, task_id: str) -> TaskRow | None:
    return await session.get(TaskRow, task_id)


async def of_job(session: ReadSession, job_id: str) -> list[str]:
    """Returns the ids of a job's tasks."""
    return list((await session.scalars(select(TaskRow.id).where(TaskRow.job_id == job_id).order_by(TaskRow.id))).all())


async def jobs_of(session: ReadSession, task_ids: Collection[str]) -> dict[str, str]:
    """Returns the job of each task."""
    rows = await session.execute(select(TaskRow.id, TaskRow.job_id).where(TaskRow.id.in_(task_ids)))
    return {row.id: row.job_id for row in rows}


async def get(session: ReadSession, task_id: str) -> TaskRow:
    """Raises NotFound also for a trial or a search task of a deleted experiment."""
    row = await find(session, task_id)
    if row is None or (row.kind in _OF_EXPERIMENTS and await _is_deleted(session, row.experiment_id)):
        raise NotFound(f"task '{task_id}' not found")
    return row


async def _is_deleted(session: ReadSession, experiment_id: int | None) -> bool:
    return await _EXPERIMENT_STATE.first(session, experiment_id=experiment_id) is ExperimentState.DELETED


_OF_EXPERIMENTS = (TaskKind.TRIAL, TaskKind.SEARCH)
_EXPERIMENT_STATE = Prepared(select(ExperimentRow.state).where(ExperimentRow.id == bindparam("experiment_id")))


async def count(session: ReadSession, wanted: Selection) -> int:
    query = select(func.count()).select_from(TaskRow).where(*wanted.where())
    return (await session.execute(query)).scalar_one()


async def page(
    session: ReadSession, wanted: Selection, *, by: Order, descending: bool, offset: int, limit: int | None
) -> Sequence[TaskRow]:
    """Returns one page of tasks without their specs and configurations."""
    order = directed((getattr(TaskRow, by), TaskRow.id), descending=descending)
    query = select(TaskRow).where(*wanted.where()).order_by(*order)
    query = query.options(defer(TaskRow.spec), defer(TaskRow.config)).offset(offset)
    return (await session.scalars(query if limit is None else query.limit(limit))).all()


async def names(session: ReadSession, task_ids: Collection[str]) -> dict[str, TaskName]:
    """Returns the names of those of the tasks that are not trials."""
    names_by_id: dict[str, TaskName] = {}
    for batch in batched(list(task_ids), MAX_IDS_A_STATEMENT):
        query = select(TaskRow.id, TaskRow.kind, TaskRow.description).where(
            TaskRow.id.in_(batch), TaskRow.kind != TaskKind.TRIAL
        )
        names_by_id.update((task_id, TaskName(kind, text)) for task_id, kind, text in await session.execute(query))
    return names_by_id


async def due(session: ReadSession) -> list[DueTask]:
    """Returns the ACTIVE and STOPPING tasks whose attempts have all ended and are settled, oldest first."""
    return [DueTask(*row) for row in await _DUE.rows(session)]


_DUE = Prepared(
    select(TaskRow.id, TaskRow.state, TaskRow.retry_at)
    .where(
        or_(TaskRow.state == TaskState.STOPPING, and_(TaskRow.state == TaskState.ACTIVE, ~is_waiting(TaskRow.id))),
        ~_HAS_OPEN,
    )
    .order_by(TaskRow.created_at, TaskRow.id)
)


async def ready(session: ReadSession, kinds: Collection[TaskKind], task_id: str | None = None) -> list[ReadyTask]:
    """Returns the ACTIVE tasks of some kinds that are ready, or one of them."""
    columns = (TaskRow.id, AllocationRow.pool, AllocationRow.ready_at, TaskRow.idle_timeout, TaskRow.last_used_at)
    query = select(*columns).join(AllocationRow, AllocationRow.task_id == TaskRow.id)
    query = query.where(TaskRow.kind.in_(kinds), TaskRow.state == TaskState.ACTIVE)
    query = query.where(AllocationRow.state.in_(LIVE), AllocationRow.ready_at.is_not(None))
    if task_id is not None:
        query = query.where(TaskRow.id == task_id)
    rows = await session.execute(query.order_by(TaskRow.created_at, TaskRow.id))
    return [ReadyTask(task, pool, at, timeout, used) for task, pool, at, timeout, used in rows if at is not None]


async def has_open(session: ReadSession, task_id: str) -> bool:
    """Returns True while an attempt of the task lives or is not settled."""
    return (await session.scalars(select(TaskRow.id).where(TaskRow.id == task_id, _HAS_OPEN))).first() is not None


async def live_contexts(session: ReadSession) -> set[str]:
    """Returns the contexts that tasks which have not ended may still need."""
    query = select(TaskRow.context_hash).where(TaskRow.context_hash.is_not(None), TaskRow.state.in_(_LIVE))
    return {value for value in await session.scalars(query) if value}


async def add(session: WriteSession, row: TaskRow) -> None:
    session.add(row)
    await session.flush()
    notify(session, notifications.TASKS, notifications.task(row.id))


async def change(session: WriteSession, row: TaskRow, **values: object) -> None:
    """Updates columns of a task other than its state."""
    await change_row(session, row, values)
    notify(session, notifications.TASKS, notifications.task(row.id))


async def move(
    session: WriteSession, clock: Clock, row: TaskRow, to: TaskState, *, actor: str = events.SYSTEM, **values: object
) -> bool:
    """Changes the state of a task, see ``StateMachine.move``."""
    if to.is_terminal:
        values.setdefault("ended_at", clock.now())
    if not await MACHINE.move(session, clock, row, to, Event(actor), **values):
        return False
    notify(session, notifications.TASKS, notifications.task(row.id), notifications.logs(row.id), notifications.CLUSTER)
    return True
