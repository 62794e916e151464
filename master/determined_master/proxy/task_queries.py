"""SQL: what tasks declare of themselves, and which have ended."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import select

from determined.states import TaskKind
from determined_master.db.models import ExperimentRow, TaskRow, TrialRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.batches import batched
from determined_master.proxy.declared_ports import DeclaredPort, declared

MAX_IDS_A_STATEMENT = 10_000
_OF_TASK, _OF_EXPERIMENT = (row.config["environment"]["proxy_ports"] for row in (TaskRow, ExperimentRow))


async def config_of(session: ReadSession, task: TaskRow) -> Mapping[str, Any] | None:
    """Returns the configuration of a task; of a trial, its experiment's."""
    if task.kind is not TaskKind.TRIAL:
        return task.config
    return await session.scalar(select(ExperimentRow.config).where(ExperimentRow.id == task.experiment_id))


async def declared_by(session: ReadSession, task_ids: Collection[str]) -> dict[str, list[DeclaredPort]]:
    """Returns the declared ports of those of the tasks that declare some. The rest of a configuration is not read."""
    ports: dict[str, list[DeclaredPort]] = {}
    for batch in batched(list(task_ids), MAX_IDS_A_STATEMENT):
        query = (
            select(TaskRow.id, _OF_TASK, _OF_EXPERIMENT)
            .outerjoin(ExperimentRow, ExperimentRow.id == TaskRow.experiment_id)
            .where(TaskRow.id.in_(batch))
        )
        for task_id, own, of_experiment in await session.execute(query):
            if found := own or of_experiment:
                ports[task_id] = declared({"environment": {"proxy_ports": found}})
    return ports


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
