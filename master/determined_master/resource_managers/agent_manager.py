"""The resource manager of agents: our own scheduler places allocations on the slots of agents."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy.exc import IntegrityError

from determined.errors import Conflict
from determined.link.isolation import Isolation
from determined.states import AllocationState
from determined_master import notifications
from determined_master.agents import repository as agent_rows
from determined_master.allocations import queue_repository
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.service import Allocations, SlotRequest
from determined_master.clock import Clock
from determined_master.db.models import AllocationRow
from determined_master.db.queue_changes import QueueChanges
from determined_master.db.session import Database, ReadSession, WriteSession, notify
from determined_master.offloading.offloader import BackgroundThread
from determined_master.resource_managers import pool_views
from determined_master.resource_managers.kept_pools import KeptPools
from determined_master.resource_managers.manager import Capacity
from determined_master.resource_managers.pool_states import PAGE, KeptPool
from determined_master.scheduling.excerpt import excerpt
from determined_master.scheduling.explain import Explanation, explain
from determined_master.scheduling.plan import Placement, Release
from determined_master.scheduling.scheduler import Steps, plan
from determined_master.scheduling.view import PoolView, RequestView, TaskGroup
from determined_master.scheduling.what_if import Changes
from determined_master.settings.pool_settings import PoolSettings

logger = logging.getLogger(__name__)


class _Due(NamedTuple):
    """What to do in a pool: the steps, and the reasons for waiting that are to be stored."""

    pool: KeptPool
    steps: Steps
    reasons: dict[str, str]


class AgentManager:
    """Implements ``ResourceManager`` for pools of agents: kept states, decisions from them, guarded updates."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        allocations: Allocations,
        pools: Mapping[str, PoolSettings],
        is_draining: Callable[[], bool],
    ) -> None:
        """``is_draining`` returns True while the cluster is about to stop: nothing is placed."""
        self._database = database
        self._clock = clock
        self._allocations = allocations
        self._pools = pools
        self._is_draining = is_draining
        self._items = Isolation("schedule", logger)
        self.kept = KeptPools(database, pools, partial(self._items.is_due, "allocation"))
        """The states from which it decides."""
        self._thread = BackgroundThread("explain")

    async def validate(self, session: ReadSession, pool: str, groups: Sequence[TaskGroup]) -> str | None:
        view = await pool_views.idle(session, self._pools[pool], groups)
        refusals = plan(view).refusals
        return refusals[0].reason if refusals else None

    async def request(self, session: WriteSession, requests: Sequence[SlotRequest]) -> None:
        await self._allocations.request(session, requests)

    async def preempt(self, session: WriteSession, row: AllocationRow, *, why: str) -> bool:
        return await self._allocations.preempt(session, row, why=why)

    async def kill(self, session: WriteSession, row: AllocationRow, *, why: str) -> None:
        await self._allocations.kill(session, row, why=why)

    async def withdraw(self, session: WriteSession, ids: Sequence[str], *, why: str) -> None:
        await self._allocations.withdraw(session, ids, why=why)

    async def adopt(self) -> None:
        """Restarts the reconnect window of every agent."""
        async with self._database.write() as session:
            await agent_rows.change_all(session, disconnected_at=self._clock.now())

    async def reconcile(self) -> float | None:
        waits: list[float] = []
        async with self.kept.current() as pools:
            due: list[_Due] = []
            for pool in pools.values():
                if pool.waits or pool.scheduler.pool.is_over_limit:
                    await self._items.run("pool", pool.name, partial(self._decide, pool, due, waits))
        for each in due:
            await self._items.run("pool", each.pool.name, partial(self._apply, each))
        return self._items.soonest(min(waits, default=None))

    async def check(self) -> None:
        await self.kept.check()

    async def explain(self, session: ReadSession, row: AllocationRow) -> Explanation:
        if row.pool not in self._pools:
            return Explanation(row.id, _gone(row.pool), 0, (), None, "its pool does not exist", Changes())
        async with self.kept.current() as pools:
            request = pools[row.pool].find(row.id)
            if not isinstance(request, RequestView):
                return Explanation(row.id, row.waiting, 0, (), None, "it has just been placed", Changes())
            with pools[row.pool].complete() as state:
                own, ahead = excerpt(state, row.id), state.queue.count_before(request.order)
            others = [
                excerpt(each.scheduler.edit()) for each in pools.values() if each.settings and each.name != row.pool
            ]
        own = await pool_views.with_times(session, own, self._clock.now(), PAGE)
        return await self._thread.run(partial(explain, own, row.id, others, ahead=ahead))

    async def queue(self, pool: str, *, slots: int, room: int) -> PoolView:
        async with self.kept.current() as pools:
            if not pools[pool].waits:
                return PoolView(pool, (), ())
            with pools[pool].complete() as state:
                return excerpt(state, slots=slots, room=room)

    async def reorder(self, session: WriteSession, pool: str) -> None:
        notify(session, notifications.SCHEDULE, notifications.CLUSTER)

    async def capacity(self, session: ReadSession, pool: str) -> Capacity:
        return await pool_views.capacity(session, pool)

    def close(self) -> None:
        self._thread.close()

    async def _decide(self, pool: KeptPool, due: list[_Due], waits: list[float]) -> None:
        """Decides, and computes the reasons for waiting that are due. Appends to ``waits`` when others are."""
        try:
            due.append(await self._due(pool, waits))
        except Exception:
            # Whatever led to it: the state is read anew.
            self._database.queue_changes.is_known = False
            raise

    async def _due(self, pool: KeptPool, waits: list[float]) -> _Due:
        steps = Steps((), ()) if pool.settings is None else pool.scheduler.steps()
        texts: dict[str, str] = {}
        if pool.reasons.are_due(with_placement=bool(steps.placements)):
            placed = {placement.allocation_id for placement in steps.placements}
            texts = await pool.reasons.batch(partial(_reason, pool, placed))
        left = pool.reasons.seconds_left()
        if left is not None:
            waits.append(left)
        return _Due(pool, steps, texts)

    async def _apply(self, due: _Due) -> None:
        for release in due.steps.releases:
            await self._items.run("allocation", release.allocation_id, partial(self._release_one, release))
        for placement in due.steps.placements:
            work = partial(self._place_one, placement, due)
            if not await self._items.run("allocation", placement.allocation_id, work):
                # It is left out for a while, so that it does not block others.
                self._database.queue_changes.add(QueueChanges(allocations={placement.allocation_id}))
        if due.reasons:
            async with self._database.write() as session:
                await queue_repository.set_waiting(session, due.reasons)
            due.pool.reasons.stored(due.reasons)

    async def _place_one(self, placement: Placement, due: _Due) -> None:
        """Places an allocation, and stores in the same transaction why others wait."""
        try:
            # After a power failure its agent is told to stop the container, and it is placed again.
            async with self._database.write(is_synced=False) as session:
                if self._is_draining():  # since this tick began
                    raise Conflict("the cluster is about to stop")
                await self._allocations.place(session, placement)
                await queue_repository.set_waiting(session, due.reasons)
        except (Conflict, IntegrityError) as error:
            logger.info("a placement is no longer valid: %s", error)
            agents = {part.agent_id for part in placement.parts}
            self._database.queue_changes.add(QueueChanges({placement.allocation_id}, agents))
        else:
            due.pool.reasons.stored(due.reasons)
            due.reasons.clear()

    async def _release_one(self, release: Release) -> None:
        async with self._database.write() as session:
            row = await allocation_rows.get(session, release.allocation_id)
            if row.state.is_live and row.state is not AllocationState.PENDING:
                await self._allocations.preempt(session, row, why=release.reason, leaves_for=release.for_allocation_id)


def _reason(pool: KeptPool, placed: set[str], allocation_id: str) -> str | None:
    """Returns why a request waits; None if it has just been placed, or its last placement failed."""
    if pool.settings is None:
        return _gone(pool.name)
    if allocation_id in placed or allocation_id not in pool.scheduler.pool.queue:
        return None
    return pool.scheduler.reason_for(allocation_id)


def _gone(pool: str) -> str:
    return (
        f'resource pool "{pool}" is not in the settings of the master any more; '
        "move the job to another one with `det job update`"
    )
