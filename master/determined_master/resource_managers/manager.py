"""The protocol of resource managers: they decide where the allocations of a pool run, start and end them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from determined_master.allocations.service import SlotRequest
from determined_master.db.models import AllocationRow
from determined_master.db.session import ReadSession, WriteSession
from determined_master.scheduling.explain import Explanation
from determined_master.scheduling.view import PoolView, TaskGroup


@dataclass(frozen=True)
class Capacity:
    """What a pool has, and what is used of it. Counts of agents, slots, containers and allocations."""

    agents: int = 0
    slots: int = 0
    """Slots of agents that are connected or within their reconnect window, disabled ones included."""
    used: int = 0
    """Slots that allocations hold."""
    slot_type: str = "cpu"
    slots_per_agent: int = 0
    """Slots of the largest agent."""
    zero_slot_containers: int = 0
    """Running containers without slots."""
    queued: int = 0
    """Pending allocations."""
    scheduled: int = 0
    """Allocations that have been placed and have not ended."""


class ResourceManager(Protocol):
    """Runs the allocations of one or more pools.

    Sessions are the caller's: what a method writes is committed or rolled back with the rest. The allocations of the
    database are the desired state: a manager repeats what is missing in its next ``reconcile``, so that neither a lost
    message nor a restart is a special case.
    """

    async def validate(self, session: ReadSession, pool: str, groups: Sequence[TaskGroup]) -> str | None:
        """Returns why the pool can never run such a request, and the nearest one that it could; None if it can, or if
        nothing is known of the pool yet."""
        ...

    async def request(self, session: WriteSession, requests: Sequence[SlotRequest]) -> None:
        """Adds a pending allocation for each request."""
        ...

    async def preempt(self, session: WriteSession, row: AllocationRow, *, why: str) -> bool:
        """Asks a running allocation to save and leave; ends one that has not started. ``why`` is shown to its owner.
        Returns True if it was asked by this call."""
        ...

    async def kill(self, session: WriteSession, row: AllocationRow, *, why: str) -> None:
        """Ends an allocation without a checkpoint. ``why`` is shown to its owner."""
        ...

    async def withdraw(self, session: WriteSession, ids: Sequence[str], *, why: str) -> None:
        """Ends pending allocations, many at a time."""
        ...

    async def reconcile(self) -> float | None:
        """Compares the pools with their queues, and starts what can start. Returns the seconds after which it has to
        be called again even if nothing changes; None if never."""
        ...

    async def adopt(self) -> None:
        """Takes over what an earlier master left running. Called once, before the first ``reconcile``."""
        ...

    async def check(self) -> None:
        """Compares what the manager keeps in memory with the database, and corrects it. Nothing waits for it."""
        ...

    async def explain(self, session: ReadSession, row: AllocationRow) -> Explanation:
        """Explains why a pending allocation waits, and what would start it now."""
        ...

    async def queue(self, pool: str, *, slots: int, room: int) -> PoolView:
        """Returns a view of the pool for its provider. Its queue holds only the requests that could be placed if agents
        were added.

        Args:
            pool: its name.
            slots: slots of these agents together.
            room: containers without slots for which these agents have room.

        If nothing waits, the view is empty, without agents too: no decision needs them then.
        """
        ...

    async def reorder(self, session: WriteSession, pool: str) -> None:
        """Is told that jobs of the pool have changed their order, priority, weight or limits."""
        ...

    async def capacity(self, session: ReadSession, pool: str) -> Capacity:
        """Returns what the pool has, and what is used of it."""
        ...

    def close(self) -> None:
        """Ends what runs beside the event loop."""
        ...
