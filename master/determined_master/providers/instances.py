"""Changes of instances: their start is ordered, they register, they end. Each is guarded and recorded."""

import logging
import secrets
from collections.abc import Sequence

from determined.states import InstanceState
from determined_master.agents import repository as agent_rows
from determined_master.agents.service import Agents
from determined_master.allocations import agent_containers_repository
from determined_master.clock import Clock
from determined_master.db.models import InstanceRow
from determined_master.db.session import Database, ReadSession
from determined_master.pool_settings import ProviderSettings
from determined_master.providers import repository
from determined_master.providers.provider import Instance

logger = logging.getLogger(__name__)

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
                slots, wanted = len(await agent_rows.slots(session, agent_id)), row.provider.get("slots_per_agent")
                note = "" if slots == wanted else f"it has {slots} slots, although slots_per_agent is {wanted}"
                if note:
                    logger.warning("agent %s of pool %s: %s", agent_id, row.pool, note)
                now = self._clock.now()
                await repository.move(session, self._clock, row, InstanceState.RUNNING, "started", note, started_at=now)

    async def not_started(self, agent_id: str, reason: str, *, may_exist: bool) -> None:
        """Records a launch that failed; with ``may_exist`` it has to be ended."""
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            if row.state is not InstanceState.STARTING:
                return
            to = InstanceState.ENDING if may_exist else InstanceState.ENDED
            ended_at = None if may_exist else self._clock.now()
            await self._agents.retire(session, agent_id, why=reason)
            await repository.move(
                session, self._clock, row, to, "not_started", reason, failure=reason, ended_at=ended_at
            )

    async def end(self, agent_id: str, reason: str, *, is_idle: bool) -> None:
        """Takes an agent that runs out of its pool; its end is ordered next. With ``is_idle`` only if it holds no
        container. Nothing can be placed on it from then on."""
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            if row.state is not InstanceState.RUNNING:
                return
            if is_idle and await agent_containers_repository.agents_with_containers(session, [agent_id]):
                return
            await self._agents.retire(session, agent_id, why=reason)
            await repository.move(session, self._clock, row, InstanceState.ENDING, "released", reason)

    async def ended(self, agent_id: str) -> None:
        async with self._database.write() as session:
            row = await repository.get(session, agent_id)
            now = self._clock.now()
            await repository.move(session, self._clock, row, InstanceState.ENDED, "ended", ended_at=now, end_failure="")

    async def not_ended(self, agent_id: str, reason: str) -> None:
        """Records that an agent could not be ended; it is tried again."""
        async with self._database.write() as session:
            await repository.set_end_failure(session, self._clock, await repository.get(session, agent_id), reason)


async def present(session: ReadSession, rows: Sequence[InstanceRow]) -> dict[str, bool]:
    """Returns the instances whose agent is in its pool, and whether it is connected."""
    wanted = {row.agent_id for row in rows}
    return {a.id: a.disconnected_at is None for a in await agent_rows.present(session) if a.id in wanted}
