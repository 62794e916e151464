"""SQL: whose an experiment, a trial, a task, a checkpoint or a line of a log is."""

from sqlalchemy import select

from determined_master.db.models import CheckpointRow, ExperimentRow, LogRow, TaskRow, TrialRow
from determined_master.db.session import ReadSession


async def owner_of_experiment(session: ReadSession, experiment_id: int) -> int | None:
    return await session.scalar(select(ExperimentRow.user_id).where(ExperimentRow.id == experiment_id))


async def owner_of_trial(session: ReadSession, trial_id: int) -> int | None:
    query = select(ExperimentRow.user_id).join(TrialRow, TrialRow.experiment_id == ExperimentRow.id)
    return await session.scalar(query.where(TrialRow.id == trial_id))


async def owner_of_task(session: ReadSession, task_id: str) -> int | None:
    return await session.scalar(select(TaskRow.user_id).where(TaskRow.id == task_id))


async def owner_of_checkpoint(session: ReadSession, uuid: str) -> int | None:
    query = select(TaskRow.user_id).join(CheckpointRow, CheckpointRow.task_id == TaskRow.id)
    return await session.scalar(query.where(CheckpointRow.uuid == uuid))


async def owner_of_line(session: ReadSession, line_id: int) -> int | None:
    query = select(TaskRow.user_id).join(LogRow, LogRow.task_id == TaskRow.id)
    return await session.scalar(query.where(LogRow.id == line_id))
