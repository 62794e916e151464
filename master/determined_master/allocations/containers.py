"""What the coming and going of an agent means for the containers on it, and so for their allocations."""

import logging
from collections.abc import Sequence
from functools import partial

from sqlalchemy.ext.asyncio import AsyncSession

from determined.link.isolation import Isolation
from determined.link.messages import ContainerExit, ReportedContainer
from determined.states import ContainerState, ExitReason
from determined_master.allocations import repository
from determined_master.allocations.observe import declare_ended, observe
from determined_master.allocations.service import Allocations
from determined_master.db.models import ContainerRow

logger = logging.getLogger(__name__)


class Containers:
    """What agents ask for of what runs on them; every method works inside the caller's session."""

    def __init__(self, allocations: Allocations) -> None:
        self._allocations = allocations
        self._items = Isolation("reports of agents", logger)

    async def is_news(self, session: AsyncSession, agent_id: str, truths: Sequence[ReportedContainer]) -> bool:
        known = {c.id: c for c, _ in await repository.live_on_agent(session, agent_id)}
        return any(_is_news(truth, known.get(truth.container_id)) for truth in truths)

    async def hear(self, session: AsyncSession, agent_id: str, truths: Sequence[ReportedContainer]) -> None:
        for truth in truths:
            await self._items.run("container", truth.container_id, partial(self._hear_one, session, agent_id, truth))

    async def _hear_one(self, session: AsyncSession, agent_id: str, truth: ReportedContainer) -> None:
        async with session.begin_nested():
            await observe(session, self._allocations, agent_id, [truth])

    async def welcome(self, session: AsyncSession, agent_id: str, truths: Sequence[ReportedContainer]) -> None:
        """Containers past their assignment that the agent knows nothing of: its folder was lost, so are they."""
        known = {truth.container_id for truth in truths}
        for container, _ in await repository.live_on_agent(session, agent_id):
            if container.id not in known and container.state is not ContainerState.ASSIGNED:
                exit_ = ContainerExit(kind="system", message=f"agent {agent_id} came back without this container")
                await declare_ended(session, self._allocations, container, exit_, ExitReason.SYSTEM)
        await self.hear(session, agent_id, truths)

    async def lose(self, session: AsyncSession, agent_id: str) -> None:
        for container, _ in await repository.live_on_agent(session, agent_id):
            exit_ = ContainerExit(kind="system", message=f"agent {agent_id} was lost beyond its reconnect window")
            await declare_ended(session, self._allocations, container, exit_, ExitReason.AGENT_LOST)

    async def kill(self, session: AsyncSession, agent_id: str, slot_id: int | None = None) -> None:
        for container, allocation in await repository.live_on_agent(session, agent_id):
            if slot_id is None or slot_id in container.slot_ids:
                await self._allocations.kill(session, allocation)


def _is_news(truth: ReportedContainer, known: ContainerRow | None) -> bool:
    """Whether a write is worth it. An ended container is heard again only for the end of its output."""
    if known is None:
        return truth.output_done
    return truth.state is not known.state or truth.output_done
