"""SQL about checkpoints."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncSession

from determined.errors import NotFound
from determined.states import CheckpointState
from determined_master import hints
from determined_master.db.models import CheckpointRow, ExperimentRow, TrialRow
from determined_master.db.session import hint


async def find(session: AsyncSession, uuid: str) -> CheckpointRow | None:
    return await session.get(CheckpointRow, uuid)


async def get(session: AsyncSession, uuid: str) -> CheckpointRow:
    row = await find(session, uuid)
    if row is None:
        raise NotFound(f"checkpoint {uuid} not found")
    return row


async def newest_completed(session: AsyncSession, task_id: str) -> CheckpointRow | None:
    """The one that the next attempt starts from: most steps, newest among equals."""
    query = (
        select(CheckpointRow)
        .where(CheckpointRow.task_id == task_id, CheckpointRow.state == CheckpointState.COMPLETED)
        .order_by(CheckpointRow.steps_completed.desc(), CheckpointRow.report_time.desc())
        .limit(1)
    )
    return (await session.execute(query)).scalars().first()


async def of_tasks(
    session: AsyncSession, task_ids: Collection[str], states: Collection[CheckpointState] = ()
) -> Sequence[CheckpointRow]:
    query = select(CheckpointRow).where(CheckpointRow.task_id.in_(task_ids))
    if states:
        query = query.where(CheckpointRow.state.in_(states))
    query = query.order_by(CheckpointRow.steps_completed, CheckpointRow.report_time)
    return (await session.execute(query)).scalars().all()


async def newest_of_tasks(
    session: AsyncSession, task_ids: Collection[str], state: CheckpointState, most: int
) -> Sequence[CheckpointRow]:
    query = (
        select(CheckpointRow)
        .where(CheckpointRow.task_id.in_(task_ids), CheckpointRow.state == state)
        .order_by(CheckpointRow.report_time.desc())
        .limit(most)
    )
    return (await session.execute(query)).scalars().all()


@dataclass(frozen=True)
class Listed:
    """A checkpoint with the trial and the experiment that it is of."""

    row: CheckpointRow
    trial: TrialRow
    experiment_id: int
    experiment_name: str
    metric: str


async def page(
    session: AsyncSession,
    *,
    experiment_id: int | None,
    states: Collection[CheckpointState],
    before: tuple[datetime, str] | None,
    most: int,
) -> Sequence[Listed]:
    """Newest first."""
    query = (
        select(CheckpointRow, TrialRow, ExperimentRow.id, ExperimentRow.name, ExperimentRow.searcher_metric)
        .join(TrialRow, TrialRow.task_id == CheckpointRow.task_id)
        .join(ExperimentRow, ExperimentRow.id == TrialRow.experiment_id)
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
    return [Listed(*found) for found in (await session.execute(query)).all()]


async def add(session: AsyncSession, **values: Any) -> CheckpointRow:
    row = CheckpointRow(**values)
    session.add(row)
    await session.flush()
    hint(session, hints.task(row.task_id))
    return row


async def change(session: AsyncSession, row: CheckpointRow, **values: Any) -> None:
    await session.execute(update(CheckpointRow).where(CheckpointRow.uuid == row.uuid).values(**values))
    hint(session, hints.task(row.task_id))


async def uuids_of_experiment(session: AsyncSession, experiment_id: int) -> Sequence[str]:
    tasks = select(TrialRow.task_id).where(TrialRow.experiment_id == experiment_id)
    query = select(CheckpointRow.uuid).where(CheckpointRow.task_id.in_(tasks)).order_by(CheckpointRow.uuid)
    return (await session.scalars(query)).all()


async def drop(session: AsyncSession, uuids: Collection[str]) -> None:
    await session.execute(delete(CheckpointRow).where(CheckpointRow.uuid.in_(uuids)))


async def set_resources(session: AsyncSession, row: CheckpointRow, resources: dict[str, int]) -> None:
    state = CheckpointState.PARTIALLY_DELETED if resources else CheckpointState.DELETED
    if resources == row.resources:
        state = row.state
    await change(session, row, state=state, resources=resources, size=sum(resources.values()))
