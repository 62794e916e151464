"""SQL for the tasks that run search methods, and for the experiments that need them."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select

from determined.config.search_plan import IN_TASK
from determined.states import ExperimentState, TaskKind, TaskState
from determined_master.db.models import ExperimentRow, TaskRow
from determined_master.db.session import ReadSession


class SearchTask(NamedTuple):
    """A task that runs a search method, and the state of its experiment."""

    task_id: str
    experiment_id: int
    experiment_state: ExperimentState
    experiment_ended: datetime | None


class NewestTask(NamedTuple):
    """The newest task of an experiment's search; ``task_id`` is None if it had none."""

    experiment_id: int
    task_id: str | None
    state: TaskState | None
    failure: str | None


async def active(session: ReadSession, experiment_id: int | None = None) -> list[SearchTask]:
    """Returns the tasks that have not ended and are not being killed, of all experiments or of one."""
    query = (
        select(TaskRow.id, ExperimentRow.id, ExperimentRow.state, ExperimentRow.end_time)
        .join(ExperimentRow, ExperimentRow.id == TaskRow.experiment_id)
        .where(TaskRow.kind == TaskKind.SEARCH, TaskRow.state == TaskState.ACTIVE)
    )
    if experiment_id is not None:
        query = query.where(TaskRow.experiment_id == experiment_id)
    return [SearchTask(*row) for row in await session.execute(query)]


async def find_active(session: ReadSession, experiment_id: int) -> SearchTask | None:
    """Returns the task that runs the search of an experiment, or None."""
    return next((each for each in await active(session, experiment_id)), None)


async def newest(session: ReadSession, without: Collection[int]) -> list[NewestTask]:
    """Returns the newest task of each active experiment whose method runs in a task, but for those of ``without``."""
    query = select(ExperimentRow.id).where(
        ExperimentRow.searcher_type.in_(IN_TASK),
        ExperimentRow.state == ExperimentState.ACTIVE,
        ExperimentRow.id.not_in(without),
    )
    tasks = []
    for experiment_id in await session.scalars(query.order_by(ExperimentRow.id)):
        last = (
            select(TaskRow.id, TaskRow.state, TaskRow.failure)
            .where(TaskRow.experiment_id == experiment_id, TaskRow.kind == TaskKind.SEARCH)
            .order_by(TaskRow.created_at.desc(), TaskRow.id.desc())
            .limit(1)
        )
        row = (await session.execute(last)).first()
        tasks.append(NewestTask(experiment_id, *(row or (None, None, None))))
    return tasks
