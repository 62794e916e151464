"""The states of all pools, made from rows and changed by the rows that have changed."""

import asyncio
import logging
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from determined.states import AllocationState
from determined_master.allocations import queue_repository
from determined_master.allocations.queue_repository import QueuedAllocation
from determined_master.db.queue_changes import QueueChanges
from determined_master.db.session import ReadSession
from determined_master.db.statements.batches import batched
from determined_master.resource_managers import pool_queries, pool_views
from determined_master.resource_managers.waiting_reasons import WaitingReasons
from determined_master.scheduling.plan import Part
from determined_master.scheduling.pool_state import PoolState
from determined_master.scheduling.scheduler import Scheduler
from determined_master.scheduling.view import AgentView, RequestView, RunningView, SchedulerView, TaskGroup
from determined_master.settings.pool_settings import PoolSettings

logger = logging.getLogger(__name__)

PAGE = 30
"""Allocations that are read and applied before the event loop runs its other tasks: in 1 to 2 ms."""
AGENT_PAGE = 20
MAX_GROUPS = 10_000
"""Different ``RequestView.groups`` that requests share; beyond it the table begins anew."""


@dataclass
class KeptPool:
    """What is kept of a pool. ``settings``: None if those of the master do not have it any more."""

    name: str
    settings: PoolSettings | None
    scheduler: Scheduler
    aside: dict[str, RequestView] = field(default_factory=dict)
    """Requests whose placement has failed. They hold up nobody, until they are tried again."""
    reasons: WaitingReasons = field(default_factory=WaitingReasons)

    @property
    def waits(self) -> bool:
        return bool(self.scheduler.pool.queue or self.aside)

    @contextmanager
    def complete(self) -> Iterator[PoolState]:
        """Yields the state with the requests that are left out."""
        state = self.scheduler.edit()
        for request in self.aside.values():
            state.add(request)
        try:
            yield state
        finally:
            for allocation_id in self.aside:
                state.remove(allocation_id)

    def find(self, allocation_id: str) -> RequestView | RunningView | None:
        state = self.scheduler.pool
        waiting = state.queue.get(allocation_id) or self.aside.get(allocation_id)
        return waiting or state.running.get(allocation_id)

    def put(self, view: RequestView | RunningView, *, is_due: bool, stored: str) -> None:
        """Adds an allocation that is not there. ``stored``: its reason for waiting."""
        if isinstance(view, RunningView):
            self.scheduler.edit().run(view)
            return
        self.reasons.add(view.allocation_id, stored)
        if is_due:
            self.scheduler.edit().add(view)
        else:
            self.aside[view.allocation_id] = view

    def take_out(self, allocation_id: str) -> None:
        self.reasons.discard(allocation_id)
        if self.aside.pop(allocation_id, None) is not None:
            return
        state = self.scheduler.edit()
        if allocation_id in state.running:
            state.forget(allocation_id)
        else:
            state.remove(allocation_id)


class PoolStates:
    def __init__(self, settings: Mapping[str, PoolSettings], is_due: Callable[[str], bool]) -> None:
        """``is_due`` returns False for an allocation whose placement has failed and is not tried again yet."""
        self._settings = settings
        self._is_due = is_due
        self._groups: dict[tuple[TaskGroup, ...], tuple[TaskGroup, ...]] = {}
        """Equal ones are one object: a queue may hold very many."""
        self.pools = {name: KeptPool(name, pool, Scheduler(_empty(name, pool))) for name, pool in settings.items()}

    async def read(self, session: ReadSession) -> None:
        """Reads everything into states that are empty."""
        async for rows in queue_repository.live(session, PAGE):
            await self._set(session, [row.id for row in rows], rows)
        await self._set_agents(session, await pool_queries.present(session))
        await self._set_provider_views(session, self._settings)

    async def apply(self, session: ReadSession, changes: QueueChanges) -> None:
        """Reads what has changed. It may be repeated, also after it was interrupted."""
        ids = changes.allocations
        if changes.jobs:
            ids = ids | await queue_repository.live_of_jobs(session, list(changes.jobs), PAGE)
        for page in batched(list(ids), PAGE):
            await self._set(session, page, await queue_repository.live_of(session, page))
            await asyncio.sleep(0)
        await self._set_agents(session, list(changes.agents))
        await self._set_provider_views(session, changes.pools)
        for pool in [each for each in self.pools.values() if each.settings is None and not each.waits]:
            if not pool.scheduler.pool.running:
                del self.pools[pool.name]

    async def _set(self, session: ReadSession, ids: Sequence[str], rows: Sequence[QueuedAllocation]) -> None:
        """Makes the allocations what their rows say; those without a row have ended. Free slots are read with the
        agents: a write that takes or frees slots notes its agents as changed too."""
        running = [row.id for row in rows if row.state is not AllocationState.PENDING]
        parts: dict[str, list[Part]] = {name: [] for name in running}
        for allocation_id, agent_id, slot_ids in await pool_queries.parts_of(session, running) if running else ():
            parts[allocation_id].append(Part(agent_id, tuple(slot_ids)))
        of_id = {row.id: row for row in rows}
        for allocation_id in ids:
            row = of_id.get(allocation_id)
            view = None
            if row is not None:
                try:
                    view = self._view(row, parts)
                except Exception:
                    logger.exception("allocation %s is left out of its queue: its row cannot be read", allocation_id)
            self._put(allocation_id, row, view)

    def _view(self, row: QueuedAllocation, parts: Mapping[str, Sequence[Part]]) -> RequestView | RunningView:
        row = row._replace(job_id=sys.intern(row.job_id))
        if row.id in parts:
            return pool_views.running(row, tuple(parts[row.id]))
        view = pool_views.request(row)
        if len(self._groups) >= MAX_GROUPS:
            self._groups.clear()
        return replace(view, groups=self._groups.setdefault(view.groups, view.groups))

    def _put(self, allocation_id: str, row: QueuedAllocation | None, view: RequestView | RunningView | None) -> None:
        is_due = self._is_due(allocation_id)
        for pool in self.pools.values():
            known = pool.find(allocation_id)
            if known is None:
                continue
            is_same = row is not None and row.pool == pool.name and known == view
            if is_same and is_due == (allocation_id not in pool.aside):
                return
            pool.take_out(allocation_id)
            pool.reasons.outdate()
        if row is not None and view is not None:
            pool = self._pool(row.pool)
            pool.put(view, is_due=is_due, stored=row.waiting)
            pool.reasons.outdate()

    def _pool(self, name: str) -> KeptPool:
        if name not in self.pools:
            self.pools[name] = KeptPool(name, None, Scheduler(_empty(name, None)))
        return self.pools[name]

    async def _set_agents(self, session: ReadSession, ids: Sequence[str]) -> None:
        for page in batched(ids, AGENT_PAGE):
            found = {view.id: (pool, view) for pool, view in await pool_views.agents(session, page, self._settings)}
            for agent_id in page:
                name, view = found.get(agent_id, ("", None))
                for pool in self.pools.values():
                    state = pool.scheduler.pool
                    if view is not None and name == pool.name:
                        if agent_id not in state.agents or pool.scheduler.edit().agent(agent_id) != _as_set(view):
                            pool.scheduler.edit().set_agent(view)
                            pool.reasons.outdate()
                    elif agent_id in state.agents:
                        pool.scheduler.edit().remove_agent(agent_id)
                        pool.reasons.outdate()
            await asyncio.sleep(0)

    async def _set_provider_views(self, session: ReadSession, names: Collection[str]) -> None:
        for name in names:
            pool = self.pools.get(name)
            if pool is not None and pool.settings is not None and pool.settings.provider is not None:
                view = await pool_views.scheduler_view(session, pool.settings)
                if view != pool.scheduler.pool.scheduler:
                    pool.scheduler.edit().set_scheduler(view)
                    pool.reasons.outdate()

    async def differing(self, other: "PoolStates") -> QueueChanges:
        """Returns the keys of what differs. Nobody may change one of them meanwhile."""
        changes = QueueChanges()
        for name in self.pools.keys() | other.pools.keys():
            mine, theirs = self.pools.get(name), other.pools.get(name)
            if mine is None or theirs is None:
                changes.pools.add(name)
                continue
            state, same = mine.scheduler.edit(), theirs.scheduler.edit()
            if state.scheduler != same.scheduler:
                changes.pools.add(name)
            await _compare(state.queue, same.queue, changes.allocations)
            await _compare(mine.aside, theirs.aside, changes.allocations)
            await _compare(state.running, same.running, changes.allocations)
            await _compare(
                {agent_id: state.agent(agent_id) for agent_id in state.agents},
                {agent_id: same.agent(agent_id) for agent_id in same.agents},
                changes.agents,
            )
        return changes

    async def dismantle(self) -> None:
        """Frees the memory of states that nobody needs any more; all at once would hold up the event loop."""
        for pool in self.pools.values():
            for _ in chain(pool.scheduler.edit().queue.dismantle(PAGE), pool.reasons.dismantle(PAGE)):
                await asyncio.sleep(0)


async def _compare(mine: Mapping[str, object], theirs: Mapping[str, object], found: set[str]) -> None:
    """Adds the keys whose values differ to ``found``."""
    for keys in (mine, theirs):
        iterator = iter(keys)
        while page := list(islice(iterator, PAGE)):
            found.update(key for key in page if mine.get(key) != theirs.get(key))
            await asyncio.sleep(0)


def _as_set(view: AgentView) -> AgentView:
    """Returns the view as a state has it."""
    return view if view.is_connected else replace(view, zero_slot_room=0)


def _empty(name: str, pool: PoolSettings | None) -> PoolState:
    return PoolState(name, pool_views.scheduler_of(pool) if pool is not None else SchedulerView())
