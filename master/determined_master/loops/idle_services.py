"""Ends services that nobody uses, and stores when the others were used last."""

import logging
from functools import partial

from determined.link.isolation import Isolation
from determined_master import notifications
from determined_master.clock import Clock
from determined_master.commands import idle
from determined_master.commands.kinds import SERVICES
from determined_master.db.models import TaskRow
from determined_master.db.session import Database, WriteSession, notify
from determined_master.events import repository as events
from determined_master.logs import repository as logs
from determined_master.settings.settings import Settings
from determined_master.streams.uses import Uses
from determined_master.tasks import repository
from determined_master.tasks.repository import ReadyTask
from determined_master.tasks.service import Tasks

logger = logging.getLogger(__name__)


class IdleServices:
    def __init__(self, database: Database, clock: Clock, settings: Settings, tasks: Tasks, uses: Uses) -> None:
        self._database = database
        self._clock = clock
        self._settings = settings
        self._tasks = tasks
        self._uses = uses
        self._began_at = clock.now()
        self._items = Isolation("idle services", logger)

    async def tick(self) -> float | None:
        """Returns the seconds until the next service is due."""
        async with self._database.read() as session:
            services = await repository.ready(session, SERVICES)
        waits: list[float] = []
        for each in services:
            step = self._step(each)
            if step.reason or step.last_used_at is not None:
                await self._items.run("service", each.task_id, partial(self._apply, each.task_id))
            if step.wait is not None:
                waits.append(step.wait)
        return self._items.soonest(*waits)

    def _step(self, service: ReadyTask) -> idle.Step:
        return idle.decide(
            idle.Service(service.ready_at, service.last_used_at),
            self._uses.of(service.task_id),
            idle.allowed(service.idle_timeout, self._settings.max_idle_in(service.pool)),
            began_at=self._began_at,
            now=self._clock.now(),
        )

    async def _apply(self, task_id: str) -> None:
        """Decides again inside the transaction: a stream may have been opened at the deadline."""
        async with self._database.write() as session:
            for service in await repository.ready(session, SERVICES, task_id):
                step = self._step(service)
                row = await repository.get(session, task_id)
                if step.reason:
                    await self._end(session, row, step.reason)
                elif step.last_used_at is not None:
                    await repository.change(session, row, last_used_at=step.last_used_at)
                    notify(session, notifications.CLUSTER)

    async def _end(self, session: WriteSession, row: TaskRow, reason: str) -> None:
        text = f"the {row.kind.value.lower()} is ended: {reason}, without a connection"
        await logs.say(session, row.id, f"{row.id}.{row.run_id}", text, self._clock.now(), "INFO")
        await self._tasks.kill(session, row, events.SYSTEM, reason)
