"""SQL for checkpoints. Lists, counts and choices are of those that hold the state of a training.

The SQL of outputs is in ``outputs_repository``.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, SQLColumnExpression, bindparam, delete, func, select, tuple_, update
from sqlalchemy.orm import InstrumentedAttribute

from determined.errors import BadRequest, NotFound
from determined.states import CheckpointRole, CheckpointState
from determined_master import notifications
from determined_master.checkpoints.states import ALLOWED
from determined_master.clock import Clock
from determined_master.db.models import CheckpointRow, ExperimentRow, MetricRow, TrialRow
from determined_master.db.session import ReadSession, WriteSession, notify
from determined_master.db.statements.json_number import json_number
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.sort_keys import in_order_of_life
from determined_master.events.state_machine import StateMachine

MACHINE = StateMachine("checkpoint", CheckpointRow, CheckpointRow.uuid, ALLOWED)
IS_STATE = CheckpointRow.role == CheckpointRole.STATE


async def has_saved(session: ReadSession, task_id: str, allocation_id: str) -> bool:
    """Returns True if an attempt of a task has reported a checkpoint, also one that was deleted since."""
    is_its = (IS_STATE, CheckpointRow.task_id == task_id, CheckpointRow.allocation_id == allocation_id)
    return (await session.scalars(select(CheckpointRow.uuid).where(*is_its).limit(1))).first() is not None


async def find(session: ReadSession, uuid: str) -> CheckpointRow | None:
    return await session.get(CheckpointRow, uuid)


async def get(session: ReadSession, uuid: str) -> CheckpointRow:
    row = await find(session, uuid)
    if row is None:
        raise NotFound(f"checkpoint '{uuid}' not found")
    return row


async def get_many(session: ReadSession, uuids: Collection[str]) -> Sequence[CheckpointRow]:
    query = select(CheckpointRow).where(CheckpointRow.uuid.in_(uuids)).order_by(CheckpointRow.uuid)
    return (await session.scalars(query)).all()


async def newest_completed(session: ReadSession, task_id: str) -> CheckpointRow | None:
    """Returns the checkpoint that the next attempt starts from: most steps, newest among equals."""
    query = (
        select(CheckpointRow)
        .where(IS_STATE, CheckpointRow.task_id == task_id, CheckpointRow.state == CheckpointState.COMPLETED)
        .order_by(CheckpointRow.steps_completed.desc(), CheckpointRow.report_time.desc())
        .limit(1)
    )
    return (await session.scalars(query)).first()


async def tasks_with_completed(session: ReadSession, task_ids: Collection[str]) -> Sequence[str]:
    """Returns the tasks that have a completed checkpoint."""
    return await _WITH_COMPLETED.scalars(session, task_ids=list(task_ids))


_WITH_COMPLETED = Prepared(
    select(CheckpointRow.task_id)
    .where(CheckpointRow.task_id.in_(bindparam("task_ids", expanding=True)))
    .where(IS_STATE, CheckpointRow.state == CheckpointState.COMPLETED)
    .distinct()
)


async def of_tasks(
    session: ReadSession, task_ids: Collection[str], states: Collection[CheckpointState] = ()
) -> Sequence[CheckpointRow]:
    query = select(CheckpointRow).where(IS_STATE, CheckpointRow.task_id.in_(task_ids))
    if states:
        query = query.where(CheckpointRow.state.in_(states))
    query = query.order_by(CheckpointRow.steps_completed, CheckpointRow.report_time)
    return (await session.scalars(query)).all()


async def newest_of_tasks(
    session: ReadSession, task_ids: Collection[str], state: CheckpointState, most: int
) -> Sequence[CheckpointRow]:
    query = (
        select(CheckpointRow)
        .where(IS_STATE, CheckpointRow.task_id.in_(task_ids), CheckpointRow.state == state)
        .order_by(CheckpointRow.report_time.desc())
        .limit(most)
    )
    return (await session.scalars(query)).all()


SortKey = SQLColumnExpression[Any] | InstrumentedAttribute[Any]


@dataclass(frozen=True)
class CheckpointOfTrial:
    """A checkpoint with its trial and its experiment."""

    row: CheckpointRow
    trial: TrialRow
    experiment_id: int
    experiment_name: str
    metric: str


async def page(
    session: ReadSession,
    *,
    experiment_id: int | None,
    states: Collection[CheckpointState],
    before: tuple[datetime, str] | None,
    most: int,
) -> Sequence[CheckpointOfTrial]:
    """Returns checkpoints, newest first."""
    query = (
        select(CheckpointRow, TrialRow, ExperimentRow.id, ExperimentRow.name, ExperimentRow.searcher_metric)
        .join(TrialRow, TrialRow.task_id == CheckpointRow.task_id)
        .join(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
        .where(IS_STATE)
        .order_by(CheckpointRow.report_time.desc(), CheckpointRow.uuid.desc())
        .limit(most)
    )
    if experiment_id is not None:
        tasks = select(TrialRow.task_id).where(TrialRow.experiment_id == experiment_id).scalar_subquery()
        query = query.where(CheckpointRow.task_id.in_(tasks))
    if states:
        query = query.where(CheckpointRow.state.in_(states))
    if before is not None:
        query = query.where(tuple_(CheckpointRow.report_time, CheckpointRow.uuid) < before)
    return [CheckpointOfTrial(*found) for found in (await session.execute(query)).all()]


@dataclass(frozen=True)
class Order:
    """Sort order of checkpoints: by a wire name of a column, or by a metric of the validation at its step. Raises
    BadRequest for an unknown column."""

    column: str = ""
    metric: str = ""
    """Metric name; empty means the searcher's metric if the column needs one."""
    larger_is_better: bool = False
    is_descending: bool = False

    def __post_init__(self) -> None:
        if self.column not in ("", "SORT_BY_UNSPECIFIED", "SORT_BY_SEARCHER_METRIC", *_SORT_COLUMNS):
            known = ", ".join(sorted([*_SORT_COLUMNS, "SORT_BY_SEARCHER_METRIC"]))
            raise BadRequest(f"sorting by {self.column[:100]} is not supported; valid columns: {known}")


def of_experiment(experiment_id: int) -> ColumnElement[bool]:
    return TrialRow.experiment_id == experiment_id


def of_trial(trial_id: int) -> ColumnElement[bool]:
    return TrialRow.id == trial_id


async def count(session: ReadSession, whose: ColumnElement[bool], states: Collection[CheckpointState]) -> int:
    query = select(func.count()).select_from(CheckpointRow).join(TrialRow, TrialRow.task_id == CheckpointRow.task_id)
    return (await session.execute(query.where(IS_STATE, whose, *_in_states(states)))).scalar_one()


async def sorted_page(
    session: ReadSession,
    whose: ColumnElement[bool],
    states: Collection[CheckpointState],
    order: Order,
    *,
    offset: int,
    limit: int | None,
) -> Sequence[tuple[CheckpointRow, TrialRow]]:
    """Returns one page of checkpoints with their trials. Those without the sort metric come last."""
    keys: list[SortKey] = [CheckpointRow.steps_completed, CheckpointRow.report_time, CheckpointRow.uuid]
    missing: list[ColumnElement[bool]] = []
    if order.metric or order.column == "SORT_BY_SEARCHER_METRIC":
        value = _metric_value(order)
        missing, keys = [value.is_(None)], [value, *keys]
    elif order.column in _SORT_COLUMNS:
        keys = [_SORT_COLUMNS[order.column], *keys]
    query = (
        select(CheckpointRow, TrialRow)
        .join(TrialRow, TrialRow.task_id == CheckpointRow.task_id)
        .where(IS_STATE, whose, *_in_states(states))
        .order_by(*missing, *(key.desc() if order.is_descending else key for key in keys))
        .offset(offset)
        .limit(limit)
    )
    return [(checkpoint, trial) for checkpoint, trial in (await session.execute(query)).all()]


_SORT_COLUMNS: dict[str, SortKey] = {
    "SORT_BY_UUID": CheckpointRow.uuid,
    "SORT_BY_TRIAL_ID": TrialRow.id,
    "SORT_BY_BATCH_NUMBER": CheckpointRow.steps_completed,
    "SORT_BY_END_TIME": CheckpointRow.report_time,
    "SORT_BY_STATE": in_order_of_life(CheckpointRow.state, CheckpointState)[0],
}


def _in_states(states: Collection[CheckpointState]) -> list[ColumnElement[bool]]:
    return [CheckpointRow.state.in_(states)] if states else []


def _metric_value(order: Order) -> ColumnElement[Any]:
    """Returns a number of the validation at the checkpoint's step; NULL without one."""
    if order.metric:
        value = json_number(MetricRow.metrics, order.metric)
        query = select(value).where(value.is_not(None))
    else:
        query = select(-MetricRow.signed_metric if order.larger_is_better else MetricRow.signed_metric)
    return (
        query.where(
            MetricRow.trial_id == TrialRow.id,
            MetricRow.group == "validation",
            MetricRow.steps == CheckpointRow.steps_completed,
            MetricRow.archived.is_(False),
        )
        .order_by(MetricRow.id.desc())
        .limit(1)
        .correlate(TrialRow, CheckpointRow)
        .scalar_subquery()
    )


async def add(session: WriteSession, **values: object) -> CheckpointRow:
    row = CheckpointRow(**values)
    session.add(row)
    await session.flush()
    notify(session, notifications.task(row.task_id))
    return row


async def change(session: WriteSession, row: CheckpointRow, **values: object) -> None:
    await session.execute(update(CheckpointRow).where(CheckpointRow.uuid == row.uuid).values(**values))
    notify(session, notifications.task(row.task_id))


async def drop(session: WriteSession, uuids: Collection[str]) -> None:
    await session.execute(delete(CheckpointRow).where(CheckpointRow.uuid.in_(uuids)))


async def move(session: WriteSession, clock: Clock, row: CheckpointRow, to: CheckpointState, **values: object) -> bool:
    """Changes the state of a checkpoint, see ``StateMachine.move``."""
    if not await MACHINE.move(session, clock, row, to, **values):
        return False
    notify(session, notifications.task(row.task_id))
    return True


async def set_resources(session: WriteSession, clock: Clock, row: CheckpointRow, resources: dict[str, int]) -> None:
    """Stores the remaining files. Fewer files than before make the checkpoint partially deleted. None make it deleted,
    and the list of those that it had stays as a record."""
    if not resources:
        if row.resources:
            await move(session, clock, row, CheckpointState.DELETED)
        return
    values = {"resources": resources, "size": sum(resources.values())}
    if resources == row.resources or not await move(session, clock, row, CheckpointState.PARTIALLY_DELETED, **values):
        await change(session, row, **values)
