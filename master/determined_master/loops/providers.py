"""Starts and ends the agents of pools with a provider: load, decide, apply; slow commands run beside it."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from determined.link.isolation import Isolation
from determined.states import InstanceState
from determined_master.agents import repository as agent_rows
from determined_master.allocations import agent_containers_repository
from determined_master.db.models import AgentRow, InstanceRow
from determined_master.db.session import Database, ReadSession
from determined_master.offloading.offloader import BackgroundThread
from determined_master.providers import instances, repository
from determined_master.providers.decision import Decision, InstanceView, Limits, ProviderView, decide
from determined_master.providers.instances import Instances
from determined_master.providers.observing import Observing
from determined_master.providers.provider import Instance, LaunchFailed, Provider, ReleaseFailed
from determined_master.scheduling.view import PoolView
from determined_master.settings.pool_settings import PoolSettings

logger = logging.getLogger(__name__)

FIRST_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS = 2.0, 300.0
MAX_END_BACKOFF_SECONDS = 30.0
"""An agent that cannot be ended takes a place of its pool: once its provider answers again it has to go soon."""
START_LOOK_SECONDS, LOOK_SECONDS = 1.0, 5.0
"""Time between two questions to the providers which agents are gone, while one starts and otherwise."""


class QueueOf(Protocol):
    async def __call__(self, pool: str, *, slots: int, room: int) -> PoolView: ...


@dataclass
class _Backoff:
    """``count`` failures in a row. Nothing is tried before ``retry_at`` of the monotonic clock."""

    count: int = 0
    retry_at: float = 0.0

    def fail(self, count: int, now: float, *, most: float = MAX_BACKOFF_SECONDS) -> None:
        self.count = count
        self.retry_at = now + min(most, FIRST_BACKOFF_SECONDS * 2 ** min(count - 1, 16))


@dataclass
class _Times:
    """Since when agents start and are idle, by the monotonic clock: a clock that jumps must end no agent. They begin
    anew when the master starts."""

    starting: dict[str, float] = field(default_factory=dict)
    idle: dict[str, float] = field(default_factory=dict)

    def keep(self, agent_ids: set[str]) -> None:
        self.starting = {name: since for name, since in self.starting.items() if name in agent_ids}
        self.idle = {name: since for name, since in self.idle.items() if name in agent_ids}


class ProviderLoop:
    def __init__(
        self,
        database: Database,
        pools: Mapping[str, PoolSettings],
        providers: Mapping[str, Provider],
        changes: Instances,
        queue_of: QueueOf,
        *,
        is_draining: Callable[[], bool],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``providers``: by type. ``queue_of``: ``ResourceManager.queue``. ``is_draining`` returns True while the
        cluster is about to stop."""
        self._database = database
        self._pools = pools
        self._providers = providers
        self._changes = changes
        self._queue_of = queue_of
        self._thread = BackgroundThread("providers")
        self._is_draining = is_draining
        self._monotonic = monotonic
        self._times = _Times()
        self._launches: dict[str, _Backoff] = defaultdict(_Backoff)
        """By pool."""
        self._ends: dict[str, _Backoff] = defaultdict(_Backoff)
        """By agent."""
        self._operations: dict[str, asyncio.Task[None]] = {}
        """What providers are doing, by agent."""
        self.has_work = True
        """False once no pool has a provider and no agent of one is left: nothing changes that but a new start."""
        self._items = Isolation("providers", logger)
        self._observing = Observing(database, providers, changes, self._items)

    async def tick(self) -> float | None:
        """Returns the seconds until it has to look again even if nothing changes."""
        if self._is_draining() or not self.has_work:
            return None
        await self._observing.look(self._operations.keys())
        async with self._database.read() as session:
            rows = await repository.live(session)
            views = await self._views(session, rows)
        self.has_work = bool(views)
        waits = [self._look_again(rows)]
        for pool, view in views.items():
            view = replace(view, pool=await self._queue(pool))
            decision = await self._thread.run(partial(decide, view))
            waits.append(decision.wait_seconds)
            await self._items.run("pool", pool, partial(self._apply, pool, view.limits, decision))
        return self._items.soonest(*waits, await self._end_all())

    async def close(self) -> None:
        """Stops the commands that run. The agents stay; the next master adopts them."""
        self._thread.close()
        running = list(self._operations.values())
        for operation in running:
            operation.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _apply(self, pool: str, limits: Limits, decision: Decision) -> None:
        for agent_id in decision.given_up:
            await self._changes.not_started(agent_id, _late(limits), may_exist=True)
        for agent_id in decision.withdrawn:
            await self._changes.withdraw(agent_id, "nothing needs it any more")
        for agent_id in decision.releases:
            await self._changes.end(agent_id, _idle(limits), is_idle=True)
        provider = self._pools[pool].provider if pool in self._pools else None
        if decision.launches and provider is not None:
            for instance in await self._changes.order(pool, provider, decision.launches):
                self._begin(instance.agent_id, self._launch(instance))

    async def _views(self, session: ReadSession, rows: Sequence[InstanceRow]) -> dict[str, ProviderView]:
        """Returns the view of each pool that has a provider, or had one and still has agents of it."""
        of_pool: dict[str, list[InstanceRow]] = defaultdict(list)
        for row in rows:
            of_pool[row.pool].append(row)
        names = {name for name, pool in self._pools.items() if pool.provider is not None}
        self._times.keep({row.agent_id for row in rows})
        names_of_agents = [name for row in rows for name in instances.agents_of_row(row)]
        busy = await agent_containers_repository.agents_with_containers(session, names_of_agents)
        present = instances.present(await agent_rows.present(session), rows)
        idle = {name for name, agents in present.items() if _are_idle(agents, busy)}
        leaving = {name for name, agents in present.items() if any(agent.leaving for agent in agents)}
        views = {}
        for name in sorted(names | of_pool.keys()):
            pool = self._pools.get(name)
            failures = (await repository.failures(session, name)).count
            found = tuple(self._instance_view(row, idle, leaving) for row in of_pool[name])
            views[name] = ProviderView(
                _limits(pool), PoolView(name, (), ()), found, failures, self._seconds_to_retry(name, failures)
            )
        return views

    async def _queue(self, name: str) -> PoolView:
        """Returns the queue of a pool; none if it has no provider any more."""
        pool = self._pools.get(name)
        if pool is None or pool.provider is None:
            return PoolView(name, (), ())
        agents, room = pool.provider.max_agents, pool.max_aux_containers_per_agent or 0
        return await self._queue_of(name, slots=agents * pool.provider.slots_per_agent, room=agents * room)

    def _instance_view(self, row: InstanceRow, idle: set[str], leaving: set[str]) -> InstanceView:
        now, name, times = self._monotonic(), row.agent_id, self._times
        view = InstanceView(name, row.state, is_leaving=name in leaving, nodes=row.provider.get("nodes", 1))
        if row.state is InstanceState.STARTING:
            if name in self._observing.queued:
                times.starting.pop(name, None)
                return replace(view, is_queued=True)
            return replace(view, starting_seconds=now - times.starting.setdefault(name, now))
        if row.state is InstanceState.RUNNING and name in idle:
            return replace(view, idle_seconds=now - times.idle.setdefault(name, now))
        times.idle.pop(name, None)
        return view

    def _seconds_to_retry(self, pool: str, failures: int) -> float:
        backoff, now = self._launches[pool], self._monotonic()
        if failures < backoff.count:
            backoff = self._launches[pool] = _Backoff()
        if failures > backoff.count:
            backoff.fail(failures, now)
        return max(0.0, backoff.retry_at - now)

    def _look_again(self, rows: Sequence[InstanceRow]) -> float | None:
        seen = [row for row in rows if _is_observed(row)]
        if any(row.state is InstanceState.STARTING for row in seen):
            return START_LOOK_SECONDS
        of_notices = [row.provider["notice_interval"] for row in seen if row.provider["type"] == "command"]
        return min([LOOK_SECONDS, *of_notices]) if seen else None

    async def _end_all(self) -> float | None:
        """Orders the end of the agents that have to end. Returns the seconds until one is tried again."""
        async with self._database.read() as session:
            ending = [row for row in await repository.live(session) if row.state is InstanceState.ENDING]
        now, waits = self._monotonic(), []
        for instance in (each for some in self._observing.by_type(ending).values() for each in some):
            left = self._ends[instance.agent_id].retry_at - now
            if instance.agent_id in self._operations:
                waits.append(START_LOOK_SECONDS)
            elif left > 0:
                waits.append(left)
            else:
                self._begin(instance.agent_id, self._end(instance))
        return min(waits, default=None)

    def _begin(self, agent_id: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._operations[agent_id] = asyncio.create_task(work, name=f"provider: {agent_id}")
        task.add_done_callback(lambda done: self._on_done(agent_id, done))

    def _on_done(self, agent_id: str, task: asyncio.Task[None]) -> None:
        del self._operations[agent_id]
        if not task.cancelled() and task.exception() is not None:
            backoff = self._ends[agent_id]
            backoff.fail(backoff.count + 1, self._monotonic(), most=MAX_END_BACKOFF_SECONDS)
            logger.error("%s failed", task.get_name(), exc_info=task.exception())

    async def _launch(self, instance: Instance) -> None:
        try:
            await self._providers[instance.settings.type].want(instance)
        except LaunchFailed as error:
            logger.warning("agent %s was not started: %s", instance.agent_id, error)
            await self._changes.not_started(instance.agent_id, str(error), may_exist=error.may_exist)

    async def _end(self, instance: Instance) -> None:
        backoff = self._ends[instance.agent_id]
        try:
            await self._providers[instance.settings.type].release(instance)
        except ReleaseFailed as error:
            backoff.fail(backoff.count + 1, self._monotonic(), most=MAX_END_BACKOFF_SECONDS)
            logger.warning("agent %s was not ended: %s", instance.agent_id, error)
            await self._changes.not_ended(instance.agent_id, str(error))
        else:
            await self._changes.ended(instance.agent_id)
            self._ends.pop(instance.agent_id, None)


def _limits(pool: PoolSettings | None) -> Limits:
    """Returns those of no agent at all for a pool without a provider: what it had is ended once it is idle."""
    provider = pool.provider if pool else None
    if pool is None or provider is None:
        return Limits()
    return Limits(
        min_agents=provider.min_agents,
        max_agents=provider.max_agents,
        slots_per_agent=provider.slots_per_agent,
        nodes=provider.nodes,
        zero_slot_room=pool.max_aux_containers_per_agent or 0,
        idle_timeout=provider.idle_timeout,
        start_timeout=provider.start_timeout,
    )


_REMOVED = "the settings of the master have no provider for its pool any more"


def _idle(limits: Limits) -> str:
    return f"nothing has needed it for {limits.idle_timeout:g} s" if limits.max_agents else _REMOVED


def _late(limits: Limits) -> str:
    return f"it did not register within {limits.start_timeout:g} s" if limits.max_agents else _REMOVED


def _is_observed(row: InstanceRow) -> bool:
    """Returns True if its provider may know something of it that it has not said when it was started or ended."""
    has_notices = row.provider.get("notice_file") or row.provider.get("notice_command")
    return row.state is not InstanceState.ENDING and bool(row.provider.get("type") != "command" or has_notices)


def _are_idle(agents: Sequence[AgentRow], busy: Collection[str]) -> bool:
    """Returns True if all agents of an instance are connected and hold no container."""
    return all(agent.disconnected_at is None and agent.id not in busy for agent in agents)
