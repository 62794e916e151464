"""Kills allocations that are still running after their preemption timeout."""

import logging
from datetime import datetime, timedelta
from functools import partial

from determined.config.experiment import MAX_PREEMPTION_TIMEOUT_SECONDS
from determined.link.isolation import Isolation
from determined_master.allocations import repository
from determined_master.clock import Clock
from determined_master.db.session import Database
from determined_master.resource_managers.managers import ResourceManagers

logger = logging.getLogger(__name__)


class Deadlines:
    def __init__(self, database: Database, clock: Clock, managers: ResourceManagers) -> None:
        self._database = database
        self._clock = clock
        self._managers = managers
        self._items = Isolation("deadlines", logger)

    async def tick(self) -> float | None:
        """Kills overdue allocations. Returns the seconds until the next deadline."""
        now = self._clock.now()
        waits: list[float] = []
        async with self._database.read() as session:
            asked = [
                (row.id, _seconds_left(row.preempt_requested_at, row.preemption_timeout, now))
                for row in await repository.preempting(session)
                if row.preempt_requested_at is not None
            ]
        for allocation_id, left in asked:
            if left > 0:
                waits.append(left)
            else:
                await self._items.run("allocation", allocation_id, partial(self._kill, allocation_id))
        return self._items.soonest(*waits)

    async def _kill(self, allocation_id: str) -> None:
        async with self._database.write() as session:
            row = await repository.get(session, allocation_id)
            late = f"killed because it still ran after its preemption_timeout ({bounded(row.preemption_timeout)} s)"
            await self._managers.kill(session, row, why="; ".join(filter(None, (row.message, late))))


def _seconds_left(requested_at: datetime, timeout: int, now: datetime) -> float:
    return (requested_at + timedelta(seconds=bounded(timeout)) - now).total_seconds()


def bounded(timeout: int) -> int:
    """Returns seconds that a timedelta accepts: a row of an earlier version may hold any number."""
    return min(max(timeout, 0), MAX_PREEMPTION_TIMEOUT_SECONDS)
