"""The plan of the scheduler: placements, releases, refusals, and reasons for waiting."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar, dataclass_transform

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[Class]) -> type[Class]:
    """Makes a data class that only type checkers treat as frozen: at run time a frozen one takes four times as long to
    create, and every decision creates some."""
    return dataclass(slots=True, unsafe_hash=True)(cls)


class Part(NamedTuple):
    """Placement on one agent: one container with these slots."""

    agent_id: str
    slots: tuple[int, ...]
    group: int = 0
    """Index of the request's group that the container belongs to."""


class Placement(NamedTuple):
    """``parts``: in the order of groups, and within a group by the containers' ranks."""

    allocation_id: str
    parts: tuple[Part, ...]


class Release(NamedTuple):
    """A running allocation that has to save and leave, so that a better one can start, or because its job holds more
    than its ``max_slots``: then ``for_allocation_id`` is None."""

    allocation_id: str
    for_allocation_id: str | None
    reason: str


@dataclass(frozen=True)
class Refusal:
    """Requests that the agents of the pool can never hold."""

    allocation_id: str
    reason: str


@frozen
class SchedulingPlan:
    placements: tuple[Placement, ...] = ()
    releases: tuple[Release, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Allocation id → reason for waiting, shown to its owner."""
