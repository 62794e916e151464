"""Keeps a task for each active search whose method runs in one, and ends those that no search needs."""

import logging
from functools import partial

from determined.link.isolation import Isolation
from determined.states import ExperimentState, TaskState
from determined_master.experiments import repository as experiment_rows
from determined_master.jobs import repository as jobs
from determined_master.tasks import repository as tasks
from determined_master.tasks import search_task, search_task_repository
from determined_master.tasks.search_task_repository import NewestTask, SearchTask
from determined_master.users import repository as users
from determined_master.wiring.services import Services

logger = logging.getLogger(__name__)

EXIT_SECONDS = 30.0
"""A task that has ended its search exits by itself within this time."""
_ENDS_ITSELF = (ExperimentState.STOPPING_COMPLETED, ExperimentState.COMPLETED)


class SearchTasks:
    def __init__(self, services: Services) -> None:
        self._database = services.database
        self._clock = services.clock
        self._tasks = services.tasks
        self._search = services.task_search
        self._settings = services.settings
        self._items = Isolation("search tasks", logger)

    async def tick(self) -> float | None:
        async with self._database.read() as session:
            running = await search_task_repository.active(session)
            served = [each.experiment_id for each in running if each.experiment_state is ExperimentState.ACTIVE]
            missing = await search_task_repository.newest(session, without=served)
        for each in running:
            if self._is_superfluous(each):
                await self._items.run("task", each.task_id, partial(self._end, each.task_id))
        for newest in missing:
            await self._items.run("experiment", newest.experiment_id, partial(self._replace, newest))
        return self._items.seconds_left()

    def _is_superfluous(self, task: SearchTask) -> bool:
        if task.experiment_state is ExperimentState.ACTIVE:
            return False
        if task.experiment_state not in _ENDS_ITSELF:
            return True
        ended = task.experiment_ended
        return ended is not None and (self._clock.now() - ended).total_seconds() > EXIT_SECONDS

    async def _end(self, task_id: str) -> None:
        async with self._database.write() as session:
            row = await tasks.find(session, task_id)
            if row is not None:
                await self._tasks.kill(session, row, "system")

    async def _replace(self, newest: NewestTask) -> None:
        """Starts a task. Gives up a search whose task failed too often, or ended without ending its search."""
        if newest.state is TaskState.STOPPING:
            return  # its end wakes this loop
        if newest.state is TaskState.ERROR:
            log = f"; its log: det task logs {newest.task_id}"
            await self._search.give_up(newest.experiment_id, f"the task of the search failed: {newest.failure}{log}")
        elif newest.state is TaskState.COMPLETED:
            reason = (
                f"the task of the search exited before the search was over; its log: det task logs {newest.task_id}"
            )
            await self._search.give_up(newest.experiment_id, reason)
        else:
            await self._start(newest.experiment_id)

    async def _start(self, experiment_id: int) -> None:
        async with self._database.write() as session:
            experiment = await experiment_rows.get(session, experiment_id)
            if experiment.state is not ExperimentState.ACTIVE:
                return
            owner = await users.get(session, experiment.user_id)
            job = await jobs.get(session, experiment.job_id)
            pool = self._settings.pool_for("", 0)
            hook = self._settings.hook_in(pool)
            await search_task.start(session, self._tasks, experiment, owner, job, pool=pool, pool_hook=hook)
