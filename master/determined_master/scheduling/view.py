"""A frozen view of one pool, from which the scheduler decides."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class AgentView:
    """``free`` are the slots that may be given now; ``total`` counts every slot that it has, enabled or not.

    ``placeable`` is False for one that is disabled, draining or inside its reconnect window: it counts for what the
    pool could hold, never for what may start now.
    """

    id: str
    free: tuple[int, ...]
    total: int
    placeable: bool = True
    zero_slot_room: int = 1 << 30
    """How many more containers without slots it may run."""


@dataclass(frozen=True)
class RequestView:
    """An allocation that waits. Lower ``priority`` goes first, then the older, then the smaller id."""

    allocation_id: str
    slots: int
    priority: int
    submitted_at: datetime
    single_agent: bool = False
    """May not be spread over several agents."""

    @property
    def order(self) -> tuple[int, datetime, str]:
        return (self.priority, self.submitted_at, self.allocation_id)


@dataclass(frozen=True)
class PoolView:
    name: str
    agents: tuple[AgentView, ...]
    waiting: tuple[RequestView, ...]
