"""Shapes of requests: what a request needs, without whose it is. Requests of one shape fit in the same places."""

from dataclasses import dataclass, field

from determined_master.scheduling.view import Constraints, RequestView


@dataclass(frozen=True)
class Member:
    """One task of a request."""

    slots: int
    constraints: Constraints
    group: int
    is_free: bool = field(init=False, repr=False, compare=False)
    """True if any agent will do."""
    is_spread: bool = field(init=False, repr=False, compare=False)
    """True if it may be split over several agents."""

    def __post_init__(self) -> None:
        constraints = self.constraints
        is_pinned = constraints.agent_id is not None
        object.__setattr__(self, "is_free", self.slots > 0 and not is_pinned and not constraints.excluded_agents)
        object.__setattr__(self, "is_spread", self.slots > 1 and not is_pinned and not constraints.single_agent)


@dataclass(frozen=True)
class Shape:
    """``members`` in the order in which they are placed: the hardest first."""

    members: tuple[Member, ...]
    preemptible: bool
    only: Member | None = field(init=False, repr=False, compare=False)
    """Its task, if it has one."""
    slots: int = field(init=False, repr=False, compare=False)
    largest: int = field(init=False, repr=False, compare=False)
    """Slots of the task that has the most."""
    is_spread: bool = field(init=False, repr=False, compare=False)
    """True if any task may be split over several agents."""
    is_pinned: bool = field(init=False, repr=False, compare=False)
    """True if any task names an agent."""
    is_anywhere: bool = field(init=False, repr=False, compare=False)
    """True if any slots will do, wherever they are: it fits if and only if enough are free."""

    def __post_init__(self) -> None:
        members = self.members
        only = members[0] if len(members) == 1 else None
        object.__setattr__(self, "only", only)
        object.__setattr__(self, "is_anywhere", only is not None and only.is_free and only.is_spread)
        object.__setattr__(self, "slots", sum(member.slots for member in members))
        object.__setattr__(self, "largest", max((member.slots for member in members), default=0))
        object.__setattr__(self, "is_spread", any(member.is_spread for member in members))
        object.__setattr__(self, "is_pinned", any(member.constraints.agent_id is not None for member in members))


def shape_of(request: RequestView) -> Shape:
    if len(request.groups) == 1 and request.groups[0].count == 1:
        group = request.groups[0]
        return Shape((Member(group.slots, group.constraints, 0),), request.preemptible)
    members = [
        Member(group.slots, group.constraints, number)
        for number, group in enumerate(request.groups)
        for _ in range(group.count)
    ]
    members.sort(key=lambda m: (m.slots == 0, m.is_spread, m.constraints.agent_id is None, -m.slots, m.group))
    return Shape(tuple(members), request.preemptible)
