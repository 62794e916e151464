"""The plan of the scheduler: placements, refusals, and reasons for waiting."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Part:
    """Placement on one agent: one container with these slots."""

    agent_id: str
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Placement:
    """``parts``: in the order of the containers' ranks."""

    allocation_id: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Refusal:
    """Requests that the agents of the pool can never hold."""

    allocation_id: str
    reason: str


@dataclass(frozen=True)
class Plan:
    placements: tuple[Placement, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    waiting: dict[str, str] = field(default_factory=dict)
    """Allocation id → reason for waiting, shown to its owner."""
