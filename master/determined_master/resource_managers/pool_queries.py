"""SQL for the agents of a pool as the scheduler needs them: few columns, because each decision reads all agents."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import bindparam, select

from determined_master.db.models import AgentRow, AgentSlotRow
from determined_master.db.prepared import Prepared
from determined_master.db.session import ReadSession


class PresentAgent(NamedTuple):
    """An agent that is connected or within its reconnect window."""

    id: str
    enabled: bool
    draining: bool
    disconnected_at: datetime | None


class PresentSlot(NamedTuple):
    agent_id: str
    slot_id: int
    enabled: bool
    status: str
    status_reason: str


async def agents(session: ReadSession, pool: str) -> list[PresentAgent]:
    """Returns the agents of a pool by id."""
    return [PresentAgent(*row) for row in await _AGENTS.rows(session, pool=pool)]


async def slots(session: ReadSession, pool: str) -> list[PresentSlot]:
    """Returns the slots of the pool's agents, by agent and number."""
    return [PresentSlot(*row) for row in await _SLOTS.rows(session, pool=pool)]


_IS_PRESENT = (AgentRow.pool == bindparam("pool"), AgentRow.lost.is_(False))
_AGENTS = Prepared(
    select(AgentRow.id, AgentRow.enabled, AgentRow.draining, AgentRow.disconnected_at)
    .where(*_IS_PRESENT)
    .order_by(AgentRow.id)
)
_SLOTS = Prepared(
    select(AgentSlotRow.agent_id, AgentSlotRow.slot_id, AgentSlotRow.enabled)
    .add_columns(AgentSlotRow.status, AgentSlotRow.status_reason)
    .join(AgentRow, AgentRow.id == AgentSlotRow.agent_id)
    .where(*_IS_PRESENT)
    .order_by(AgentSlotRow.agent_id, AgentSlotRow.slot_id)
)
