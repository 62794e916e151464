"""SQL for trials."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    SQLColumnExpression,
    bindparam,
    func,
    select,
    type_coerce,
    union_all,
)
from sqlalchemy.orm import defer

from determined.errors import NotFound
from determined.states import AllocationState, TaskKind, TokenScope, TrialState
from determined_master import notifications
from determined_master.allocations.repository import LIVE
from determined_master.clock import Clock
from determined_master.db.base import table_of
from determined_master.db.batches import batched
from determined_master.db.models import AllocationRow, ExperimentRow, MetricRow, TaskRow, TrialRow
from determined_master.db.prepared import Prepared, add_rows, get_row, insert_rows, update_rows
from determined_master.db.row_changes import change_row
from determined_master.db.session import ReadSession, WriteSession, delete_rows, notify
from determined_master.events import repository as events
from determined_master.events.state_machine import Event, StateMachine
from determined_master.trials.states import ALLOWED


class Named(NamedTuple):
    """Name of a task's trial for short references."""

    trial_id: int
    experiment_id: int
    experiment_name: str


class AttemptTimes(NamedTuple):
    """Times at which an attempt requested slots, was ready on all of them, and ended."""

    created: datetime
    ready: datetime | None
    ended: datetime | None


MAX_IDS_A_STATEMENT = 10_000
FIGURES = frozenset({"progress", "steps_completed"})
"""Columns that every metric report updates; changes to them publish ``metrics:<id>``."""
_LIVE = [s for s in TrialState if s.is_live]
MACHINE = StateMachine(
    "trial",
    TrialRow,
    TrialRow.id,
    ALLOWED,
    describe=lambda row: {"reason": row.exit_reason.value if row.exit_reason else None},
    described=(TrialRow.exit_reason,),
)


async def find(session: ReadSession, trial_id: int) -> TrialRow | None:
    return await get_row(session, TrialRow, trial_id)


async def get(session: ReadSession, trial_id: int) -> TrialRow:
    row = await find(session, trial_id)
    if row is None:
        raise NotFound(f"trial {trial_id} not found")
    return row


async def get_by_task(session: ReadSession, task_id: str) -> TrialRow:
    row = await find_by_task(session, task_id)
    if row is None:
        raise NotFound(f"task {task_id} not found")
    return row


async def owner_of(session: ReadSession, trial_id: int) -> int:
    """Returns the id of the user who owns the trial's experiment."""
    query = (
        select(ExperimentRow.user_id)
        .join(TrialRow, TrialRow.experiment_id == ExperimentRow.id)
        .where(TrialRow.id == trial_id)
    )
    owner_id = (await session.scalars(query)).one_or_none()
    if owner_id is None:
        raise NotFound(f"trial {trial_id} not found")
    return owner_id


async def find_by_task(session: ReadSession, task_id: str) -> TrialRow | None:
    return await _OF_TASK.first(session, task_id=task_id)


_OF_TASK = Prepared(select(TrialRow).where(TrialRow.task_id == bindparam("task_id")))


class RequestedTrial(NamedTuple):
    """A trial as its search knows it."""

    trial_id: int
    request_id: str
    progress: float


async def requested(session: ReadSession, experiment_id: int, trial_ids: Collection[int]) -> list[RequestedTrial]:
    """Returns the live trials of an experiment and the given ones, without reading the rows, which are long."""
    found = await _REQUESTED.rows(session, experiment_id=experiment_id, trial_ids=list(trial_ids))
    return [RequestedTrial(*row) for row in sorted(found)]


_IS_OF_EXPERIMENT = TrialRow.experiment_id == bindparam("experiment_id")
# Two queries, each with an index: by "or" all trials of the experiment would be read.
_REQUESTED_IDS = union_all(
    select(TrialRow.id).where(_IS_OF_EXPERIMENT, TrialRow.is_live()),
    select(TrialRow.id).where(_IS_OF_EXPERIMENT, TrialRow.id.in_(bindparam("trial_ids", expanding=True))),
)
_REQUESTED = Prepared(
    select(TrialRow.id, TrialRow.request_id, TrialRow.progress).where(TrialRow.id.in_(_REQUESTED_IDS))
)


async def first_warm_start(session: ReadSession, experiment_id: int) -> str | None:
    """Returns the checkpoint from which the experiment's first trial started."""
    return await _FIRST_WARM_START.first(session, experiment_id=experiment_id)


_FIRST_WARM_START = Prepared(
    select(TrialRow.warm_start_checkpoint)
    .where(TrialRow.experiment_id == bindparam("experiment_id"))
    .order_by(TrialRow.id)
    .limit(1)
)


async def by_ids(session: ReadSession, trial_ids: Collection[int]) -> Sequence[TrialRow]:
    return (await session.scalars(select(TrialRow).where(TrialRow.id.in_(trial_ids)))).all()


async def of_experiment(session: ReadSession, experiment_id: int) -> Sequence[TrialRow]:
    query = select(TrialRow).where(TrialRow.experiment_id == experiment_id).order_by(TrialRow.id)
    return (await session.scalars(query)).all()


Order = Literal[
    "id",
    "start_time",
    "end_time",
    "state",
    "duration",
    "checkpoint_size",
    "steps_completed",
    "restarts",
    "searcher_metric_value",
]
"""The columns by which pages of trials can be sorted."""
_LAST_MOMENT = type_coerce(func.coalesce(TrialRow.end_time, TrialRow.start_time), BigInteger)
_ORDERS: dict[Order, tuple[SQLColumnExpression[Any], ...]] = {
    "id": (),
    "start_time": (TrialRow.start_time,),
    "end_time": (TrialRow.end_time.is_(None), _LAST_MOMENT),
    "state": (TrialRow.state,),
    "duration": (TrialRow.end_time.is_(None), _LAST_MOMENT - type_coerce(TrialRow.start_time, BigInteger)),
    "checkpoint_size": (TrialRow.checkpoint_size,),
    "steps_completed": (TrialRow.steps_completed,),
    "restarts": (TrialRow.restarts,),
    "searcher_metric_value": (TrialRow.searcher_metric_value.is_(None), TrialRow.searcher_metric_value),
}


def _in_experiment(experiment_id: int, states: Collection[TrialState]) -> tuple[ColumnElement[bool], ...]:
    where = TrialRow.experiment_id == experiment_id
    return (where, TrialRow.state.in_(states)) if states else (where,)


async def count(session: ReadSession, experiment_id: int, states: Collection[TrialState] = ()) -> int:
    """Returns the number of an experiment's trials, of all states or of some."""
    query = select(func.count()).select_from(TrialRow).where(*_in_experiment(experiment_id, states))
    return (await session.execute(query)).scalar_one()


async def page(
    session: ReadSession,
    experiment_id: int,
    states: Collection[TrialState] = (),
    *,
    by: Order = "id",
    descending: bool = False,
    offset: int = 0,
    limit: int | None = None,
) -> Sequence[TrialRow]:
    """Returns one page of an experiment's trials. Missing values come last, or first in descending order."""
    columns = (*_ORDERS[by], TrialRow.id)
    order = [column.desc() for column in columns] if descending else columns
    query = select(TrialRow).where(*_in_experiment(experiment_id, states)).order_by(*order)
    return (await session.scalars(query.offset(offset).limit(limit))).all()


async def most_telling(session: ReadSession, experiment_id: int, most: int) -> Sequence[TrialRow]:
    """Returns the live trials and the newest of the others, by id: a search may have very many."""
    query = (
        select(TrialRow)
        .where(TrialRow.experiment_id == experiment_id)
        .order_by(TrialRow.state.in_(_LIVE).desc(), TrialRow.id.desc())
        .limit(most)
    )
    return sorted((await session.scalars(query)).all(), key=lambda row: row.id)


async def without_metrics(session: ReadSession, trial_ids: Collection[int]) -> Sequence[TrialRow]:
    query = select(TrialRow).where(TrialRow.id.in_(trial_ids)).options(defer(TrialRow.summary_metrics))
    return (await session.scalars(query)).all()


async def counts(session: ReadSession, experiment_ids: Collection[int]) -> dict[int, int]:
    query = (
        select(TrialRow.experiment_id, func.count())
        .where(TrialRow.experiment_id.in_(experiment_ids))
        .group_by(TrialRow.experiment_id)
    )
    return {row[0]: row[1] for row in (await session.execute(query)).all()}


async def live_states(session: ReadSession, experiment_id: int) -> dict[TrialState, list[int]]:
    """Returns the ids of an experiment's live trials by their state."""
    query = select(TrialRow.state, TrialRow.id).where(TrialRow.experiment_id == experiment_id, TrialRow.is_live())
    found: dict[TrialState, list[int]] = {}
    for state, trial_id in await session.execute(query.order_by(TrialRow.id)):
        found.setdefault(state, []).append(trial_id)
    return found


async def live_allocations(
    session: ReadSession, experiment_id: int, state: TrialState
) -> list[tuple[str, AllocationState]]:
    """Returns id and state of each live allocation of the experiment's trials that are in ``state``."""
    query = (
        select(AllocationRow.id, AllocationRow.state)
        .join(TrialRow, TrialRow.task_id == AllocationRow.task_id)
        .where(TrialRow.experiment_id == experiment_id, TrialRow.state == state, AllocationRow.state.in_(LIVE))
    )
    return [(allocation_id, of) for allocation_id, of in await session.execute(query)]


async def change_each(session: WriteSession, experiment_id: int, values: Sequence[dict[str, Any]]) -> None:
    """Changes trials of an experiment in one statement. Each of ``values`` has the ``id`` and the same columns."""
    await update_rows(session, TrialRow, values)
    notify(session, notifications.experiment(experiment_id))


async def storage_of(session: ReadSession, row: TrialRow) -> dict[str, Any]:
    """Returns the checkpoint storage of the trial's experiment."""
    query = select(ExperimentRow.config).where(ExperimentRow.id == row.experiment_id)
    storage: dict[str, Any] = (await session.execute(query)).scalar_one()["checkpoint_storage"]
    return storage


async def add(session: WriteSession, experiment: ExperimentRow, **values: object) -> TrialRow:
    """Adds a trial and its task."""
    row = TrialRow(experiment_id=experiment.id, **values)
    await insert_rows(session, table_of(TaskRow), [task_of(experiment, row)])
    await add_rows(session, [row])
    notify(session, notifications.experiment(row.experiment_id))
    return row


def task_of(experiment: ExperimentRow, trial: TrialRow) -> dict[str, Any]:
    """Returns the columns of a new trial's task."""
    return {
        "id": trial.task_id,
        "kind": TaskKind.TRIAL,
        "job_id": experiment.job_id,
        "user_id": experiment.user_id,
        "experiment_id": experiment.id,
        "token_scope": TokenScope.TRIAL,
        "created_at": trial.start_time,
    }


async def change(session: WriteSession, row: TrialRow, **values: object) -> None:
    """Updates columns of a trial other than its state."""
    await change_row(session, row, values)
    topic = notifications.metrics if values.keys() <= FIGURES else notifications.experiment
    notify(session, topic(row.experiment_id))


async def move(
    session: WriteSession, clock: Clock, row: TrialRow, to: TrialState, *, actor: str = events.SYSTEM, **values: object
) -> bool:
    """Changes the state of a trial, see ``StateMachine.move``."""
    if to.is_terminal:
        values.setdefault("end_time", clock.now())
    if not await MACHINE.move(session, clock, row, to, Event(actor), **values):
        return False
    notify(session, notifications.experiment(row.experiment_id))
    return True


async def attempt_times(session: ReadSession, experiment_ids: Collection[int]) -> dict[int, list[AttemptTimes]]:
    """Returns when the attempts of each experiment's trials waited and ran; experiments without attempts are absent."""
    query = (
        select(TrialRow.experiment_id, AllocationRow.created_at, AllocationRow.ready_at, AllocationRow.ended_at)
        .join(AllocationRow, TrialRow.task_id == AllocationRow.task_id)
        .where(TrialRow.experiment_id.in_(experiment_ids))
    )
    found: dict[int, list[AttemptTimes]] = {}
    for experiment_id, created, ready, ended in await session.execute(query):
        found.setdefault(experiment_id, []).append(AttemptTimes(created, ready, ended))
    return found


async def names_of_tasks(session: ReadSession, task_ids: Collection[str]) -> dict[str, Named]:
    """Returns trials by task; tasks that are not trials are left out."""
    found: dict[str, Named] = {}
    for batch in batched(list(task_ids), MAX_IDS_A_STATEMENT):
        query = (
            select(TrialRow.task_id, TrialRow.id, ExperimentRow.id, ExperimentRow.name)
            .join(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
            .where(TrialRow.task_id.in_(batch))
        )
        found.update((task, Named(trial, of, name)) for task, trial, of, name in await session.execute(query))
    return found


async def ids_of_experiment(session: ReadSession, experiment_id: int) -> Sequence[int]:
    return (await session.scalars(select(TrialRow.id).where(TrialRow.experiment_id == experiment_id))).all()


async def drop_some_metrics(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Deletes up to ``most`` reports of an experiment and returns their number."""
    trial_ids = select(TrialRow.id).where(TrialRow.experiment_id == experiment_id)
    some = select(MetricRow.id).where(MetricRow.trial_id.in_(trial_ids)).limit(most)
    return await delete_rows(session, MetricRow, some)
