"""Starts reconnect windows that could not be stored before, expires agents after theirs, and ends the containers of
agents that were disabled, or ended by their provider, and held more than one transaction ends."""

import logging
from datetime import timedelta
from functools import partial

from determined.link.isolation import Isolation
from determined_master.agents import repository
from determined_master.agents.registry import Registry
from determined_master.agents.service import Agents
from determined_master.clock import Clock
from determined_master.db.session import Database

logger = logging.getLogger(__name__)


class AgentLoop:
    def __init__(
        self, database: Database, clock: Clock, agents: Agents, registry: Registry, reconnect_wait: float
    ) -> None:
        """``reconnect_wait``: seconds that a disconnected agent has to come back."""
        self._database = database
        self._clock = clock
        self._agents = agents
        self._registry = registry
        self._reconnect_wait = timedelta(seconds=reconnect_wait)
        self._items = Isolation("agents", logger)

    async def tick(self) -> float | None:
        """Returns the seconds until the next agent may expire."""
        now = self._clock.now()
        for agent_id in sorted(self._registry.left):
            await self._agents.disconnected(agent_id)
            self._registry.left.discard(agent_id)
        async with self._database.read() as session:
            left_over = await repository.with_containers_to_end(session)
            present = await repository.present(session)
        ends = {
            row.id: row.disconnected_at + self._reconnect_wait for row in present if row.disconnected_at is not None
        }
        for agent_id in left_over:
            await self._items.run("agent", agent_id, partial(self._agents.end_left_over, agent_id))
        for agent_id, end in ends.items():
            if end <= now:
                await self._items.run("agent", agent_id, partial(self._agents.expire, agent_id))
        return self._items.soonest(
            min(((end - now).total_seconds() for end in ends.values() if end > now), default=None)
        )
