"""Shapes of requests: what a request needs, without whose it is. Requests of one shape fit in the same places."""

from dataclasses import dataclass
from functools import cached_property

from determined_master.scheduling.view import Constraints, RequestView


@dataclass(frozen=True)
class Member:
    """One task of a request."""

    slots: int
    constraints: Constraints
    group: int

    @cached_property
    def is_free(self) -> bool:
        """Returns True if any agent will do."""
        return self.slots > 0 and self.constraints.agent_id is None and not self.constraints.excluded_agents

    @cached_property
    def is_spread(self) -> bool:
        """Returns True if it may be split over several agents."""
        return self.slots > 1 and not self.constraints.single_agent and self.constraints.agent_id is None


@dataclass(frozen=True)
class Shape:
    """``members`` in the order in which they are placed: the hardest first."""

    members: tuple[Member, ...]
    preemptible: bool

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.members, self.preemptible))

    @cached_property
    def slots(self) -> int:
        return sum(member.slots for member in self.members)

    @cached_property
    def largest(self) -> int:
        """Returns the slots of the task that has the most."""
        return max(member.slots for member in self.members)

    @cached_property
    def is_spread(self) -> bool:
        """Returns True if any task may be split over several agents."""
        return any(member.is_spread for member in self.members)

    @cached_property
    def is_pinned(self) -> bool:
        return any(member.constraints.agent_id is not None for member in self.members)


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
