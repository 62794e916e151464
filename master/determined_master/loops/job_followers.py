"""Lets the allocations of changed jobs follow them, a lot in each transaction: to their priority, place and pool.

The command itself moves the first lot (jobs/followers_repository.py), which is all of them for most jobs. Others write
between the lots, and after a crash what is left is found again: it differs from its job.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from determined.link.isolation import Isolation
from determined_master.db.session import Database
from determined_master.db.statements.batches import batched
from determined_master.jobs import followers_repository
from determined_master.jobs.pool_moves import move_lot
from determined_master.resource_managers.managers import ResourceManagers

logger = logging.getLogger(__name__)

INTERVAL_SECONDS = 600.0
"""A tick reads the whole queue, so it mostly runs when it is notified."""


class JobFollowers:
    def __init__(self, database: Database, managers: ResourceManagers) -> None:
        self._database = database
        self._managers = managers
        self._items = Isolation("jobs", logger)

    async def tick(self) -> float | None:
        async with self._database.read() as session:
            behind = await followers_repository.behind(session)
        await self._in_lots(behind.in_place, self._follow)
        await self._in_lots(behind.in_pool, self._move)
        return self._items.seconds_left()

    async def _in_lots(self, job_ids: Sequence[str], lot: Callable[[str], Awaitable[bool]]) -> None:
        """Lets all jobs have their lots in turn. ``lot`` returns True for the last one."""
        left = list(job_ids)
        while left:
            done: set[str] = set()

            async def one(job_id: str, done: set[str] = done) -> None:
                if await lot(job_id):
                    done.add(job_id)

            worked = {job_id for job_id in left if await self._items.run("job", job_id, partial(one, job_id))}
            left = [job_id for job_id in left if job_id in worked - done]

    async def _follow(self, job_id: str) -> bool:
        async with self._database.read() as session:
            found = await followers_repository.lagging(session, job_id)
        for lot in batched(found, followers_repository.FOLLOWERS_A_LOT):
            async with self._database.write() as session:
                await followers_repository.follow_these(session, lot)
        return len(found) < followers_repository.MAX_FOUND

    async def _move(self, job_id: str) -> bool:
        async with self._database.read() as session:
            waiting = await followers_repository.misplaced_waiting(session, job_id)
        for lot in batched(waiting, followers_repository.MISPLACED_A_LOT):
            async with self._database.write() as session:
                await move_lot(session, self._managers, [job_id], lot)
        if waiting:
            return False
        async with self._database.write() as session:
            return await move_lot(session, self._managers, [job_id])
