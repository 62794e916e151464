"""A frozen view of one pool, from which the scheduler decides."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class AgentView:
    """``free``: slots that may be assigned now; ``total``: all slots, enabled or not. ``placeable`` is False for an
    agent that is disabled, draining or within its reconnect window: it counts only for what the pool could ever
    hold."""

    id: str
    free: tuple[int, ...]
    total: int
    placeable: bool = True
    zero_slot_room: int = 1 << 30
    """Number of further containers without slots that it may run."""
    unusable: tuple[str, ...] = ()
    """Why its enabled slots that no task holds cannot be assigned, a sentence for each."""
    is_connected: bool = True


@dataclass(frozen=True)
class RequestView:
    """A pending allocation. Order: lower ``priority``, then older, then smaller id."""

    allocation_id: str
    slots: int
    priority: int
    submitted_at: datetime
    single_agent: bool = False
    """True if it must not be spread over several agents."""
    agent_id: str | None = None
    """The only agent that may run it, also while that agent is disabled."""

    @property
    def order(self) -> tuple[int, datetime, str]:
        return (self.priority, self.submitted_at, self.allocation_id)


@dataclass(frozen=True)
class PoolView:
    name: str
    agents: tuple[AgentView, ...]
    waiting: tuple[RequestView, ...]
