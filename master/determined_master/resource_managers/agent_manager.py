"""The resource manager of agents: our own scheduler places allocations on the slots of agents."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from sqlalchemy.exc import IntegrityError

from determined.errors import Conflict
from determined.link.isolation import Isolation
from determined.states import AllocationState
from determined_master import notifications
from determined_master.allocations import queue_repository
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.queue_repository import Queued
from determined_master.allocations.service import Allocations, SlotRequest
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow
from determined_master.db.session import Database, ReadSession, WriteSession, notify
from determined_master.pool_settings import PoolSettings
from determined_master.resource_managers import pool_views
from determined_master.resource_managers.manager import Capacity
from determined_master.scheduling.explain import Explanation, explain
from determined_master.scheduling.plan import Placement, Release
from determined_master.scheduling.scheduler import plan
from determined_master.scheduling.view import PoolView, TaskGroup
from determined_master.scheduling.what_if import Changes

logger = logging.getLogger(__name__)

REASONS_SECONDS = 0.5
"""Why something waits is stored at the latest after this time, or together with a placement after half of it."""


class AgentManager:
    """Implements ``ResourceManager`` for pools of agents: a frozen view of each pool, a plan, guarded updates."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        allocations: Allocations,
        pools: Mapping[str, PoolSettings],
        *,
        start_windows: Callable[[], Awaitable[None]],
        is_draining: Callable[[], bool],
    ) -> None:
        """``start_windows`` starts the reconnect window of every agent. ``is_draining`` returns True while the cluster
        is about to stop: nothing is placed."""
        self._database = database
        self._clock = clock
        self._allocations = allocations
        self._pools = pools
        self._start_windows = start_windows
        self._is_draining = is_draining
        self._items = Isolation("schedule", logger)
        self._stale_since: dict[str, float] = {}
        """Since when the stored reasons for waiting of a pool are stale, by the clock of the event loop."""

    async def validate(self, session: ReadSession, pool: str, groups: Sequence[TaskGroup]) -> str | None:
        view = await pool_views.idle(session, self._pools[pool], groups)
        refusals = plan(view).refusals
        return refusals[0].reason if refusals else None

    async def submit(self, session: WriteSession, requests: Sequence[SlotRequest]) -> None:
        await self._allocations.request(session, requests)

    async def preempt(self, session: WriteSession, row: AllocationRow, *, why: str) -> bool:
        return await self._allocations.terminate(session, row, why=why)

    async def kill(self, session: WriteSession, row: AllocationRow, *, why: str) -> None:
        await self._allocations.kill(session, row, why=why)

    async def withdraw(self, session: WriteSession, ids: Sequence[str], *, why: str) -> None:
        await self._allocations.end_pending(session, ids, why=why)

    async def adopt(self) -> None:
        await self._start_windows()

    async def observe(self) -> float | None:
        if self._is_draining():
            return None
        queues: dict[str, Sequence[Queued]] = {}
        views: list[PoolView] = []
        async with self._database.read() as session:
            for name in await queue_repository.pools_with_pending(session):
                queue = await queue_repository.of_pool(session, name)
                queues[name] = queue.waiting
                if name in self._pools:
                    # An allocation whose placement failed must not block others: the plan leaves it out for a while.
                    due = [each for each in queue.waiting if self._items.is_due("allocation", each.id)]
                    queue = queue._replace(waiting=due)
                    views.append(await pool_views.whole(session, self._pools[name], self._clock.now(), queue))
        waits: list[float] = []
        for view in views:
            await self._items.run("pool", view.name, partial(self._place, view, queues.pop(view.name), waits))
        for name, left in queues.items():
            await self._store_reasons(_stale(left, {each.id: _gone(name) for each in left}))
        return self._items.soonest(min(waits, default=None))

    async def explain(self, session: ReadSession, row: AllocationRow) -> Explanation:
        if row.pool not in self._pools:
            return Explanation(row.id, _gone(row.pool), 0, (), None, "its pool does not exist", Changes())
        now = self._clock.now()
        views = {
            name: await pool_views.whole(session, pool, now, is_explained=True) for name, pool in self._pools.items()
        }
        own = views.pop(row.pool)
        if all(each.allocation_id != row.id for each in own.waiting):
            return Explanation(row.id, row.waiting, 0, (), None, "it has just been placed", Changes())
        return explain(own, row.id, list(views.values()))

    async def reorder(self, session: WriteSession, pool: str) -> None:
        notify(session, notifications.SCHEDULE, notifications.CLUSTER)

    async def capacity(self, session: ReadSession, pool: str) -> Capacity:
        return await pool_views.capacity(session, pool)

    async def _place(self, pool: PoolView, queue: Sequence[Queued], waits: list[float]) -> None:
        wanted = plan(pool)
        for release in wanted.releases:
            await self._items.run("allocation", release.allocation_id, partial(self._release_one, release))
        # Submission refuses what the pool can never hold. What was accepted waits: an agent may be away for a while.
        never = {refusal.allocation_id: refusal.reason for refusal in wanted.refusals}
        stale = _stale(queue, {**wanted.waiting, **never})
        left = self._seconds_to_reasons(pool.name) if stale else 0.0
        with_placement = stale if left <= REASONS_SECONDS / 2 else []
        for placement in wanted.placements:
            await self._items.run(
                "allocation", placement.allocation_id, partial(self._place_one, placement, with_placement)
            )
        if stale and left > 0:
            waits.append(left)
            return
        self._stale_since.pop(pool.name, None)
        await self._store_reasons(stale)

    def _seconds_to_reasons(self, pool: str) -> float:
        """Returns for how long the reasons of a pool may still be stale: in a queue that moves on, most of them would
        change again at once."""
        now = asyncio.get_running_loop().time()
        return self._stale_since.setdefault(pool, now) + REASONS_SECONDS - now

    async def _place_one(self, placement: Placement, stale: list[tuple[Queued, str]]) -> None:
        """Places an allocation, and stores in the same transaction why others wait, of which ``stale`` is emptied."""
        try:
            # After a power failure its agent is told to stop the container, and it is placed again.
            async with self._database.write(is_synced=False) as session:
                await self._allocations.place(session, placement)
                await queue_repository.set_waiting(session, stale)
        except (Conflict, IntegrityError) as error:
            logger.info("a placement is no longer valid: %s", error)
        else:
            stale.clear()

    async def _release_one(self, release: Release) -> None:
        async with self._database.write() as session:
            row = await allocation_rows.get(session, release.allocation_id)
            if row.state.is_live and row.state is not AllocationState.PENDING:
                await self._allocations.terminate(
                    session, row, why=release.reason, leaves_for=release.for_allocation_id
                )

    async def _store_reasons(self, stale: Sequence[tuple[Queued, str]]) -> None:
        if stale:
            async with self._database.write() as session:
                await queue_repository.set_waiting(session, stale)


def _stale(queue: Sequence[Queued], waiting: Mapping[str, str]) -> list[tuple[Queued, str]]:
    """Returns the reasons for waiting that have changed."""
    return [(each, waiting[each.id]) for each in queue if waiting.get(each.id, each.waiting) != each.waiting]


def _gone(pool: str) -> str:
    return (
        f'resource pool "{pool}" is not in the settings of the master any more; '
        "move the job to another one with `det job update`"
    )
