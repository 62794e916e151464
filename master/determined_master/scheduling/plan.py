"""What the scheduler wants done: placements, refusals, and why the rest waits."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Placement:
    allocation_id: str
    agent_id: str
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Refusal:
    """No agent of the pool can ever hold it."""

    allocation_id: str
    reason: str


@dataclass(frozen=True)
class Plan:
    placements: tuple[Placement, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    waiting: dict[str, str] = field(default_factory=dict)
    """Allocation id → why it waits, in words for its owner."""
