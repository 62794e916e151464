"""Changes of instances: their start is ordered, they register, they end. Each is guarded and recorded."""

import logging
import secrets
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from determined.states import InstanceState
from determined_master.agents import repository as agent_rows
from determined_master.agents.departure import Departure
from determined_master.agents.service import Agents
from determined_master.allocations import agent_containers_repository
from determined_master.clock import Clock
from determined_master.db.models import AgentRow, InstanceRow
from determined_master.db.session import Database, WriteSession
from determined_master.providers import repository
from determined_master.providers.provider import Instance, Observation, ObservedState, agents_of
from determined_master.settings.pool_settings import ProviderSettings

logger = logging.getLogger(__name__)

EARLY = timedelta(seconds=20)
"""An agent that ends by itself within this time after its registration was of no use."""
_NAME_LENGTH = 40
"""Characters of the pool's name that the name of an agent begins with; events hold 64."""


class Instances:
    def __init__(self, database: Database, clock: Clock, agents: Agents) -> None:
        self._database = database
        self._clock = clock
        self._agents = agents

    async def order(self, pool: str, provider: ProviderSettings, count: int) -> list[Instance]:
        """Stores new instances. Only when they are stored may they be started."""
        names = [f"{pool[:_NAME_LENGTH]}-{secrets.token_hex(4)}" for _ in range(count)]
        async with self._database.write() as session:
            now, settings = self._clock.now(), provider.model_dump(mode="json")
            rows = [
                InstanceRow(agent_id=name, pool=pool, state=InstanceState.STARTING, provider=settings, requested_at=now)
                for name in names
            ]
            await repository.add(session, self._clock, rows)
        return [Instance(name, pool, provider) for name in names]

    async def started(self, agent_id: str) -> None:
        """Records that the agent has registered."""
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            if row.state is InstanceState.STARTING:
                wanted = row.provider.get("slots_per_agent")
                counts = [len(await agent_rows.slots(session, each)) for each in agents_of_row(row)]
                slots = next((count for count in counts if count != wanted), wanted)
                note = "" if slots == wanted else f"it has {slots} slots, although slots_per_agent is {wanted}"
                if note:
                    logger.warning("agent %s of pool %s: %s", agent_id, row.pool, note)
                now = self._clock.now()
                values = {"started_at": now, "waiting": "", "start_estimate": None}
                await repository.move(session, self._clock, row, InstanceState.RUNNING, "started", note, **values)

    async def not_started(self, agent_id: str, reason: str, *, may_exist: bool) -> None:
        """Records a launch that failed; with ``may_exist`` it has to be ended."""
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            if row.state is not InstanceState.STARTING:
                return
            to = InstanceState.ENDING if may_exist else InstanceState.ENDED
            ended_at = None if may_exist else self._clock.now()
            await self._retire(session, row, reason)
            await repository.move(
                session, self._clock, row, to, "not_started", reason, failure=reason, ended_at=ended_at
            )

    async def withdraw(self, agent_id: str, reason: str) -> None:
        """Gives up an agent that has not started, because nothing needs it any more; that is no failure."""
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            if row.state is InstanceState.STARTING:
                await self._retire(session, row, reason)
                await repository.move(session, self._clock, row, InstanceState.ENDING, "released", reason)

    async def end(self, agent_id: str, reason: str, *, is_idle: bool) -> None:
        """Takes the agents of a running instance out of their pool; its end is ordered next. With ``is_idle`` only if
        they hold no container. Nothing can be placed on them from then on."""
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            if row.state is not InstanceState.RUNNING:
                return
            if is_idle and await agent_containers_repository.agents_with_containers(session, agents_of_row(row)):
                return
            await self._retire(session, row, reason)
            await repository.move(session, self._clock, row, InstanceState.ENDING, "released", reason)

    async def gone(self, agent_id: str, reason: str) -> None:
        """Records that an agent which ran ended by itself. One that did so at once counts as a failed launch: the next
        one would probably do the same."""
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            if row.state is not InstanceState.RUNNING:
                return
            await self._retire(session, row, reason)
            is_early = row.started_at is not None and self._clock.now() - row.started_at < EARLY
            failure = f"it ended within {EARLY.total_seconds():g} s of its start: {reason}" if is_early else ""
            await repository.move(session, self._clock, row, InstanceState.ENDING, "released", reason, failure=failure)

    async def ended(self, agent_id: str) -> None:
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            now = self._clock.now()
            await repository.move(session, self._clock, row, InstanceState.ENDED, "ended", ended_at=now, end_failure="")

    async def not_ended(self, agent_id: str, reason: str) -> None:
        """Records that an agent could not be ended; it is tried again."""
        async with self._database.write() as session:
            await repository.set_end_failure(session, self._clock, await repository.get(session, agent_id), reason)

    async def observe(self, agent_id: str, seen: Observation) -> None:
        """Stores what a provider sees of an instance that is not gone."""
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            await repository.set_waiting(session, row, *waits_for(seen))
            if row.state is InstanceState.RUNNING:
                for each in agents_of_row(row):
                    await self._agents.set_departure(session, each, departure_of(seen))

    async def _retire(self, session: WriteSession, row: InstanceRow, reason: str) -> None:
        for agent_id in agents_of_row(row):
            await self._agents.retire(session, agent_id, why=reason)


def waits_for(seen: Observation) -> tuple[str, datetime | None]:
    """Returns why an instance waits outside the cluster, and when it will probably start."""
    return (seen.reason, seen.start_estimate) if seen.state is ObservedState.QUEUED else ("", None)


def departure_of(seen: Observation) -> Departure:
    return Departure(
        seen.origin,
        seen.leaves_at,
        seen.reason if seen.leaves_at is not None else "",
        has_time_limit=seen.has_time_limit,
    )


def agents_of_row(row: InstanceRow) -> tuple[str, ...]:
    """Returns the ids of the agents of an instance. Rows of an earlier version know no nodes."""
    return agents_of(row.agent_id, row.provider.get("nodes", 1))


def present(agents: Collection[AgentRow], rows: Sequence[InstanceRow]) -> dict[str, list[AgentRow]]:
    """Returns the instances all of whose agents are among ``agents``, with these."""
    by_id = {agent.id: agent for agent in agents}
    found = {row.agent_id: [by_id.get(each) for each in agents_of_row(row)] for row in rows}
    return {name: [each for each in some if each] for name, some in found.items() if None not in some}
