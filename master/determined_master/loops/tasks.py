"""Requests allocations for active tasks that are not trials, and settles those that ended."""

import logging
from collections.abc import Sequence
from functools import partial

from determined.link.isolation import Isolation
from determined.states import TaskState
from determined_master.allocations import repository as allocation_rows
from determined_master.clock import Clock
from determined_master.db.session import Database
from determined_master.tasks import repository
from determined_master.tasks.repository import DueTask
from determined_master.tasks.service import Tasks

logger = logging.getLogger(__name__)


class TaskLoop:
    def __init__(self, database: Database, clock: Clock, tasks: Tasks) -> None:
        self._database = database
        self._clock = clock
        self._tasks = tasks
        self._items = Isolation("tasks", logger)

    async def tick(self) -> float | None:
        async with self._database.read() as session:
            unsettled = await allocation_rows.unsettled(session, of_trials=False)
            due = await repository.due(session)
        if unsettled:
            for allocation_id in unsettled:
                await self._items.run("allocation", allocation_id, partial(self._settle_one, allocation_id))
            async with self._database.read() as session:
                due = await repository.due(session)
        for each in due:
            if each.state is TaskState.STOPPING:
                await self._items.run("task", each.task_id, partial(self._finish_one, each.task_id))
        return self._items.soonest(await self._request([each for each in due if each.state is TaskState.ACTIVE]))

    async def _settle_one(self, allocation_id: str) -> None:
        async with self._database.write() as session:
            ended = await allocation_rows.get(session, allocation_id)
            if not ended.settled:
                await self._tasks.settle(session, await repository.get(session, ended.task_id), ended)

    async def _finish_one(self, task_id: str) -> None:
        async with self._database.write() as session:
            await self._tasks.finish_stopped(session, await repository.get(session, task_id))

    async def _request(self, wanting: Sequence[DueTask]) -> float | None:
        """Requests slots for tasks. Returns the seconds until the next back-off ends."""
        now = self._clock.now()
        for each in wanting:
            if each.retry_at is None or each.retry_at <= now:
                await self._items.run("task", each.task_id, partial(self._request_one, each.task_id))
        waits = [(each.retry_at - now).total_seconds() for each in wanting if each.retry_at and each.retry_at > now]
        return min(waits, default=None)

    async def _request_one(self, task_id: str) -> None:
        async with self._database.write() as session:
            row = await repository.get(session, task_id)
            if row.state is TaskState.ACTIVE and not await repository.has_open(session, task_id):
                await self._tasks.request_slots(session, row)
