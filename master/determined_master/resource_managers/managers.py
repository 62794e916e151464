"""Finds the resource manager of each pool."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from determined_master.allocations.service import SlotRequest
from determined_master.db.models import AllocationRow
from determined_master.db.session import ReadSession, WriteSession
from determined_master.resource_managers.manager import Capacity, ResourceManager
from determined_master.scheduling.explain import Explanation
from determined_master.scheduling.view import PoolView, TaskGroup


class ResourceManagers:
    """Passes each call to the manager of its pool. An allocation of a pool that the settings no longer have belongs to
    ``default``: it can still be preempted, killed and withdrawn."""

    def __init__(self, by_pool: Mapping[str, ResourceManager], default: ResourceManager) -> None:
        self._by_pool = by_pool
        self._default = default
        self._all = list({id(each): each for each in (default, *by_pool.values())}.values())

    async def adopt(self) -> None:
        for manager in self._all:
            await manager.adopt()

    async def reconcile(self) -> float | None:
        """Lets every manager compare its pools with their queues. Returns the seconds until the first has to again."""
        waits = [wait for manager in self._all if (wait := await manager.reconcile()) is not None]
        return min(waits, default=None)

    async def check(self) -> None:
        for manager in self._all:
            await manager.check()

    def close(self) -> None:
        for manager in self._all:
            manager.close()

    def of(self, pool: str) -> ResourceManager:
        return self._by_pool.get(pool, self._default)

    async def validate(self, session: ReadSession, pool: str, groups: Sequence[TaskGroup]) -> str | None:
        return await self.of(pool).validate(session, pool, groups)

    async def request(self, session: WriteSession, requests: Sequence[SlotRequest]) -> None:
        by_pool: dict[str, list[SlotRequest]] = defaultdict(list)
        for request in requests:
            by_pool[request.pool].append(request)
        for pool, some in by_pool.items():
            await self.of(pool).request(session, some)

    async def preempt(self, session: WriteSession, row: AllocationRow, *, why: str) -> bool:
        return await self.of(row.pool).preempt(session, row, why=why)

    async def kill(self, session: WriteSession, row: AllocationRow, *, why: str) -> None:
        await self.of(row.pool).kill(session, row, why=why)

    async def withdraw(self, session: WriteSession, pool: str, ids: Sequence[str], *, why: str) -> None:
        await self.of(pool).withdraw(session, ids, why=why)

    async def explain(self, session: ReadSession, row: AllocationRow) -> Explanation:
        return await self.of(row.pool).explain(session, row)

    async def queue(self, pool: str, *, slots: int, room: int) -> PoolView:
        return await self.of(pool).queue(pool, slots=slots, room=room)

    async def reorder(self, session: WriteSession, pool: str) -> None:
        await self.of(pool).reorder(session, pool)

    async def capacity(self, session: ReadSession, pool: str) -> Capacity:
        return await self.of(pool).capacity(session, pool)
