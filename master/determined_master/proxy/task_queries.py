"""SQL: what tasks declare of themselves, and which have ended."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import select

from determined.states import TaskKind
from determined_master.db.models import ExperimentRow, TaskRow, TrialRow
from determined_master.db.session import ReadSession


async def config_of(session: ReadSession, task: TaskRow) -> Mapping[str, Any] | None:
    """Returns the configuration of a task; of a trial, its experiment's."""
    if task.kind is not TaskKind.TRIAL:
        return task.config
    return await session.scalar(select(ExperimentRow.config).where(ExperimentRow.id == task.experiment_id))


async def ended(session: ReadSession, task_ids: Collection[str]) -> set[str]:
    """Returns those of the tasks that have ended, or do not exist any more."""
    query = (
        select(TaskRow.id, TaskRow.state, TrialRow.state)
        .outerjoin(TrialRow, TrialRow.task_id == TaskRow.id)
        .where(TaskRow.id.in_(task_ids))
    )
    live = set()
    for task_id, of_task, of_trial in (await session.execute(query)).tuples():
        state = of_task or of_trial
        if state is None or not state.is_terminal:
            live.add(task_id)
    return set(task_ids) - live
