"""SQL for trials."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    bindparam,
    case,
    func,
    select,
    type_coerce,
)
from sqlalchemy.orm import defer

from determined.errors import NotFound
from determined.states import ExperimentState, TaskKind, TokenScope, TrialState
from determined_master import notifications
from determined_master.allocations import repository as allocation_rows
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow, ExperimentRow, MetricRow, TaskRow, TrialRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.db.statements.batches import batched
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import (
    change_row,
    delete_rows,
    insert_for_keys,
    insert_rows,
    update_rows,
)
from determined_master.db.statements.sort_keys import Keys, directed, in_order_of_life, missing_last
from determined_master.events import repository as events
from determined_master.events.state_machine import Event, StateMachine
from determined_master.trials.states import ALLOWED


class TrialName(NamedTuple):
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
FIGURES = frozenset({"progress", "steps_completed", "last_report_at"})
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


_KEPT = select(TrialRow).join(ExperimentRow).where(ExperimentRow.state != ExperimentState.DELETED)
"""The rows of a deleted experiment's trials stay, for the cluster's usage and its events; nobody reads them by id."""


async def find(session: ReadSession, trial_id: int) -> TrialRow | None:
    """Returns None also for a trial of a deleted experiment."""
    return await _BY_ID.first(session, trial_id=trial_id)


_BY_ID = Prepared(_KEPT.where(TrialRow.id == bindparam("trial_id")))


async def get(session: ReadSession, trial_id: int) -> TrialRow:
    row = await find(session, trial_id)
    if row is None:
        raise NotFound(f"trial '{trial_id}' not found")
    return row


async def get_by_task(session: ReadSession, task_id: str) -> TrialRow:
    row = await find_by_task(session, task_id)
    if row is None:
        raise NotFound(f"task '{task_id}' not found")
    return row


async def owner_of(session: ReadSession, trial_id: int) -> int:
    """Returns the id of the user who owns the trial's experiment."""
    query = (
        select(ExperimentRow.user_id)
        .join(TrialRow, TrialRow.experiment_id == ExperimentRow.id)
        .where(TrialRow.id == trial_id, ExperimentRow.state != ExperimentState.DELETED)
    )
    owner_id = (await session.scalars(query)).one_or_none()
    if owner_id is None:
        raise NotFound(f"trial '{trial_id}' not found")
    return owner_id


async def find_by_task(session: ReadSession, task_id: str) -> TrialRow | None:
    """Returns None also for a trial of a deleted experiment."""
    return await _OF_TASK.first(session, task_id=task_id)


_OF_TASK = Prepared(_KEPT.where(TrialRow.task_id == bindparam("task_id")))


class LiveTrials(NamedTuple):
    """The trials of an experiment that have not ended. ``progress``: added up."""

    number: int
    progress: float


async def live(session: ReadSession, experiment_id: int) -> LiveTrials:
    return LiveTrials(*(await _LIVE_TRIALS.rows(session, experiment_id=experiment_id))[0])


_IS_OF_EXPERIMENT = TrialRow.experiment_id == bindparam("experiment_id")
_LIVE_TRIALS = Prepared(
    select(func.count(), func.coalesce(func.sum(TrialRow.progress), 0.0)).where(_IS_OF_EXPERIMENT, TrialRow.is_live())
)


async def has_live(session: ReadSession, experiment_id: int) -> bool:
    return bool(await _ANY_LIVE.rows(session, experiment_id=experiment_id))


_ANY_LIVE = Prepared(select(TrialRow.id).where(_IS_OF_EXPERIMENT, TrialRow.is_live()).limit(1))


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
    return (await session.scalars(select(TrialRow).where(TrialRow.id.in_(trial_ids)).order_by(TrialRow.id))).all()


async def of_experiment(session: ReadSession, experiment_id: int) -> Sequence[TrialRow]:
    query = select(TrialRow).where(TrialRow.experiment_id == experiment_id).order_by(TrialRow.id)
    return (await session.scalars(query)).all()


class EndedTrial(NamedTuple):
    """A trial of an experiment that has ended."""

    trial_id: int
    request_id: str
    state: TrialState


async def ended_trials(session: ReadSession, experiment_id: int) -> list[EndedTrial]:
    """Returns the trials of an experiment that has ended, by id; they may be very many."""
    query = select(TrialRow.id, TrialRow.request_id, TrialRow.state).where(TrialRow.experiment_id == experiment_id)
    return [EndedTrial(*row) for row in await session.execute(query.order_by(TrialRow.id))]


async def resumable(
    session: ReadSession, experiment_id: int, after: int, to: int, *, is_single: bool
) -> list[EndedTrial]:
    """Returns a lot of the ended trials that train on when their experiment is continued, by id. The only trial of an
    experiment without a search does so also if it has completed."""
    ended = [state for state in TrialState if state.is_terminal and (is_single or state is not TrialState.COMPLETED)]
    query = (
        select(TrialRow.id, TrialRow.request_id, TrialRow.state)
        .where(TrialRow.experiment_id == experiment_id, TrialRow.id > after, TrialRow.id <= to)
        .where(TrialRow.state.in_(ended))
        .order_by(TrialRow.id)
        .limit(LOT)
    )
    return [EndedTrial(*row) for row in await session.execute(query)]


LOT = 250
"""Trials without slots that one transaction moves."""
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
    "latest_searcher_metric",
]
"""The columns by which pages of trials can be sorted."""
_LAST_MOMENT = type_coerce(func.coalesce(TrialRow.end_time, TrialRow.start_time), BigInteger)
_LATEST = (
    select(case((ExperimentRow.smaller_is_better, MetricRow.signed_metric), else_=-MetricRow.signed_metric))
    .select_from(MetricRow)
    .join(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
    .where(MetricRow.id == TrialRow.latest_validation_id)
    .correlate(TrialRow)
    .scalar_subquery()
)
"""The searcher's metric in the latest validation."""
_ORDERS: dict[Order, Keys] = {
    "id": (),
    "start_time": (TrialRow.start_time,),
    "end_time": (TrialRow.end_time.is_(None), _LAST_MOMENT),
    "state": in_order_of_life(TrialRow.state, TrialState),
    "duration": (TrialRow.end_time.is_(None), _LAST_MOMENT - type_coerce(TrialRow.start_time, BigInteger)),
    "checkpoint_size": (TrialRow.checkpoint_size,),
    "steps_completed": (TrialRow.steps_completed,),
    "restarts": (TrialRow.restarts,),
    "searcher_metric_value": missing_last(TrialRow.searcher_metric_value),
    "latest_searcher_metric": missing_last(_LATEST),
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
    order = directed((*_ORDERS[by], TrialRow.id), descending=descending)
    query = select(TrialRow).where(*_in_experiment(experiment_id, states)).order_by(*order)
    return (await session.scalars(query.offset(offset).limit(limit))).all()


async def most_telling(session: ReadSession, experiment_id: int, most: int) -> Sequence[TrialRow]:
    """Returns the trials that have slots, the other live ones and the newest of the rest, by id: a search may have very
    many."""
    has_slots = (
        select(AllocationRow.id)
        .where(AllocationRow.task_id == TrialRow.task_id, AllocationRow.state.in_(allocation_rows.PLACED))
        .exists()
    )
    query = (
        select(TrialRow)
        .where(TrialRow.experiment_id == experiment_id)
        .order_by(has_slots.desc(), TrialRow.state.in_(_LIVE).desc(), TrialRow.id.desc())
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


async def change_each(session: WriteSession, experiment_id: int, values: Sequence[dict[str, Any]]) -> None:
    """Changes trials of an experiment in one statement. Each of ``values`` has the ``id`` and the same columns."""
    await update_rows(session, TrialRow, values)
    notify(session, notifications.experiment(experiment_id))


async def storage_of(session: ReadSession, row: TrialRow) -> dict[str, Any]:
    """Returns the checkpoint storage of the trial's experiment."""
    query = select(ExperimentRow.config).where(ExperimentRow.id == row.experiment_id)
    storage: dict[str, Any] = (await session.execute(query)).scalar_one()["checkpoint_storage"]
    return storage


async def add(session: WriteSession, experiment: ExperimentRow, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Adds trials of an experiment, given by their columns, and their tasks. Returns their ids."""
    if not rows:
        return []
    await insert_rows(session, table_of(TaskRow), [task_of(experiment, row) for row in rows])
    ids = await insert_for_keys(session, table_of(TrialRow), rows)
    notify(session, notifications.experiment(experiment.id))
    return ids


def task_of(experiment: ExperimentRow, trial: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the columns of a new trial's task."""
    return {
        "id": trial["task_id"],
        "kind": TaskKind.TRIAL,
        "job_id": experiment.job_id,
        "user_id": experiment.user_id,
        "experiment_id": experiment.id,
        "token_scope": TokenScope.TRIAL,
        "created_at": trial["start_time"],
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


async def names_of_tasks(session: ReadSession, task_ids: Collection[str]) -> dict[str, TrialName]:
    """Returns trials by task; tasks that are not trials are left out."""
    names_by_id: dict[str, TrialName] = {}
    for batch in batched(list(task_ids), MAX_IDS_A_STATEMENT):
        query = (
            select(TrialRow.task_id, TrialRow.id, ExperimentRow.id, ExperimentRow.name)
            .join(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
            .where(TrialRow.task_id.in_(batch))
        )
        names_by_id.update((task, TrialName(trial, of, name)) for task, trial, of, name in await session.execute(query))
    return names_by_id


async def ids_of_experiment(session: ReadSession, experiment_id: int) -> Sequence[int]:
    return (await session.scalars(select(TrialRow.id).where(TrialRow.experiment_id == experiment_id))).all()


async def drop_some_metrics(session: WriteSession, experiment_id: int, most: int | None) -> int:
    """Deletes up to ``most`` reports of an experiment and returns their number."""
    trial_ids = select(TrialRow.id).where(TrialRow.experiment_id == experiment_id)
    some = select(MetricRow.id).where(MetricRow.trial_id.in_(trial_ids)).limit(most)
    return await delete_rows(session, MetricRow, some)
