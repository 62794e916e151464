"""SQL for the checkpoints that hold outputs of trials: files that a script wrote."""

from collections.abc import Collection, Sequence
from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.orm import defer

from determined.states import CheckpointRole, CheckpointState
from determined_master.db.models import CheckpointRow, TrialRow
from determined_master.db.session import ReadSession

_KEPT = (CheckpointRow.role == CheckpointRole.OUTPUTS, CheckpointRow.state == CheckpointState.COMPLETED)
_NEWEST_FIRST = (CheckpointRow.report_time.desc(), CheckpointRow.uuid.desc())


async def newest(session: ReadSession, task_ids: Collection[str]) -> dict[str, str]:
    """Returns the id of the outputs that the next attempt gets, by task; a task without any is left out."""
    query = select(CheckpointRow.task_id, CheckpointRow.uuid).where(CheckpointRow.task_id.in_(task_ids), *_KEPT)
    found: dict[str, str] = {}
    for task_id, uuid in await session.execute(query.order_by(*_NEWEST_FIRST)):
        found.setdefault(task_id, uuid)
    return found


async def others(session: ReadSession, task_id: str, uuid: str) -> Sequence[CheckpointRow]:
    """Returns the outputs of a task that newer ones replace."""
    query = select(CheckpointRow).where(CheckpointRow.task_id == task_id, CheckpointRow.uuid != uuid, *_KEPT)
    return (await session.scalars(query)).all()


async def page(
    session: ReadSession,
    experiment_id: int,
    *,
    trial_id: int | None,
    before: tuple[datetime, str] | None,
    most: int,
) -> Sequence[tuple[CheckpointRow, int]]:
    """Returns outputs of an experiment with their trials, newest first, without the names of their files."""
    query = (
        select(CheckpointRow, TrialRow.id)
        .join(TrialRow, TrialRow.task_id == CheckpointRow.task_id)
        .where(TrialRow.experiment_id == experiment_id, *_KEPT)
        .options(defer(CheckpointRow.resources))
        .order_by(*_NEWEST_FIRST)
        .limit(most)
    )
    if trial_id is not None:
        query = query.where(TrialRow.id == trial_id)
    if before is not None:
        query = query.where(tuple_(CheckpointRow.report_time, CheckpointRow.uuid) < before)
    return [(row, trial) for row, trial in await session.execute(query)]
