"""SQL for agents and what allocations hold of them, as the scheduler needs it: few columns, of what has changed."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, select

from determined_master.db.models import AgentRow, AgentSlotRow, ContainerRow, SlotHoldRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.prepared import Prepared


class PresentAgent(NamedTuple):
    """An agent that is connected or within its reconnect window."""

    id: str
    pool: str
    enabled: bool
    draining: bool
    leaving: bool
    leaves_at: datetime | None
    leaves_why: str
    disconnected_at: datetime | None


class PresentSlot(NamedTuple):
    agent_id: str
    slot_id: int
    enabled: bool
    status: str
    status_reason: str


async def present(session: ReadSession) -> Sequence[str]:
    """Returns the ids of all agents that are connected or within their reconnect window, in order."""
    return await _PRESENT.scalars(session)


async def present_in(session: ReadSession, pool: str) -> Sequence[str]:
    """Returns the ids of those of one pool, in order."""
    return await _PRESENT_IN.scalars(session, pool=pool)


async def agents(session: ReadSession, ids: Sequence[str]) -> list[PresentAgent]:
    """Returns those of the agents that are connected or within their reconnect window, by id."""
    return [PresentAgent._make(row) for row in await _AGENTS.rows(session, agent_ids=ids)]


async def slots(session: ReadSession, agent_ids: Sequence[str]) -> list[PresentSlot]:
    """Returns the slots of the agents, by agent and number."""
    return [PresentSlot(*row) for row in await _SLOTS.rows(session, agent_ids=agent_ids)]


async def parts_of(session: ReadSession, ids: Sequence[str]) -> Sequence[tuple[str, str, list[int]]]:
    """Returns allocation, agent and slots of each container of the allocations, by rank."""
    return await _PARTS.rows(session, allocation_ids=ids)


_PARTS = Prepared(
    select(ContainerRow.allocation_id, ContainerRow.agent_id, ContainerRow.slot_ids)
    .where(ContainerRow.allocation_id.in_(bindparam("allocation_ids", expanding=True)))
    .order_by(ContainerRow.rank)
)


async def held_slots(session: ReadSession, agent_ids: Sequence[str]) -> Sequence[tuple[str, int]]:
    """Returns agent and slot of each slot of the agents that an allocation holds."""
    return await _HELD.rows(session, agent_ids=agent_ids)


_HELD = Prepared(
    select(SlotHoldRow.agent_id, SlotHoldRow.slot_id).where(
        SlotHoldRow.released_at.is_(None), SlotHoldRow.agent_id.in_(bindparam("agent_ids", expanding=True))
    )
)


_PRESENT = Prepared(select(AgentRow.id).where(AgentRow.lost.is_(False)).order_by(AgentRow.id))
_PRESENT_IN = Prepared(
    select(AgentRow.id).where(AgentRow.pool == bindparam("pool"), AgentRow.lost.is_(False)).order_by(AgentRow.id)
)
_AGENTS = Prepared(
    select(*(getattr(AgentRow, name) for name in PresentAgent._fields))
    .where(AgentRow.lost.is_(False), AgentRow.id.in_(bindparam("agent_ids", expanding=True)))
    .order_by(AgentRow.id)
)
_SLOTS = Prepared(
    select(AgentSlotRow.agent_id, AgentSlotRow.slot_id, AgentSlotRow.enabled)
    .add_columns(AgentSlotRow.status, AgentSlotRow.status_reason)
    .where(AgentSlotRow.agent_id.in_(bindparam("agent_ids", expanding=True)))
    .order_by(AgentSlotRow.agent_id, AgentSlotRow.slot_id)
)
