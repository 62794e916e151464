"""What the agents of a pool could hold if they were idle: impossible requests, and who competes for which agents."""

from collections.abc import Iterable

from determined_master.scheduling.agent_index import AgentIndex
from determined_master.scheduling.fitting import Fitting, Room, is_room
from determined_master.scheduling.shapes import Member, Shape
from determined_master.scheduling.view import NO_LIMIT, AgentView, ProviderShape

PROVIDED = "\x7fprovided"
"""Begins the ids of agents that a provider could add; sorts behind all others."""


class Capacity:
    """The agents of a pool without what runs on them. ``ever``: all agents, enabled or not, and those that a provider
    could add. ``now``: slots that are enabled and work."""

    def __init__(
        self, pool: str, agents: Iterable[AgentView], provided: ProviderShape | None, fitting: Fitting
    ) -> None:
        self._pool = pool
        self._agents = {agent.id: agent for agent in agents}
        ever, now = AgentIndex(), AgentIndex()
        for agent in self._agents.values():
            ever.add(agent.id, agent.total, agent.total)
            if agent.is_connected:
                now.add(agent.id, agent.capacity, agent.total, placeable=agent.placeable)
        for number in range(provided.max_agents if provided else 0):
            slots = provided.slots_per_agent if provided else 0
            ever.add(f"{PROVIDED}{number:06}", slots, slots)
        self._usable: dict[frozenset[str], frozenset[str]] = {}
        """Equal sets are one object, so that they are compared fast."""
        self._provides = provided is not None
        self._ever = Room(ever, dict.fromkeys(ever.count, NO_LIMIT), fitting)
        self._now = Room(now, dict.fromkeys(now.count, NO_LIMIT), fitting)

    def could_ever_hold(self, shape: Shape) -> bool:
        """Returns whether the pool could hold the shape; True for one that names an agent which is away, and while
        nothing is known of the pool: it has neither an agent nor a provider."""
        if any(pin is not None and pin not in self._agents for pin in _pins(shape)):
            return True
        is_unknown = not self._agents and not self._provides
        return is_unknown or is_room(shape, self._ever)

    def usable_by(self, shape: Shape) -> frozenset[str]:
        """Returns the agents of which some placement of the shape would take slots (containers, if it needs no slot);
        none if it cannot be placed until somebody enables, repairs or adds something."""
        if not is_room(shape, self._now):
            return frozenset()
        slotted = [member for member in shape.members if member.slots or not shape.slots]
        usable = frozenset(agent for member in slotted for agent in self._candidates(member))
        return self._usable.setdefault(usable, usable)

    def refusal(self, shape: Shape, role: str) -> str:
        """Returns why the pool can never hold the shape, and the nearest shape that it could hold."""
        excluded = frozenset[str]().union(*(m.constraints.excluded_agents for m in shape.members))
        excluded &= self._agents.keys()
        largest = self.largest(shape)
        name = "resources.slots_per_trial" if role == "trial" else "resources.slots"
        first, *others = shape.members
        if others:
            needs = f"needs {len(shape.members)} tasks with {shape.slots} slots together"
            biggest = max(member.slots for member in shape.members)
            have = f"the agents of pool {self._pool!r} cannot hold all of them at once"
            advice = (
                f"lower the slots of a task from {biggest} to {largest} or less" if largest else "ask for fewer tasks"
            )
        else:
            needs, have = self._single(first, excluded)
            advice = f"lower {name} to {largest} or less" if largest else ""
        if excluded:
            have += f" ({', '.join(sorted(excluded))} excluded by its log policies)"
        return f"{needs}, but {have}; {advice + ', or ' if advice else ''}add agents"

    def largest(self, shape: Shape) -> int:
        """Returns the most slots that the largest task of the shape may ask for; 0 if none fits."""
        first, *others = shape.members
        if not others:
            return self._most(first)
        biggest = max(member.slots for member in shape.members)
        for slots in range(biggest - 1, 0, -1):
            members = tuple(
                Member(min(m.slots, slots), m.constraints, m.group) if m.slots == biggest else m for m in shape.members
            )
            if is_room(Shape(members, shape.preemptible), self._ever):
                return slots
        return 0

    def _most(self, member: Member) -> int:
        counts = self._ever.index.count
        allowed = [a for a in counts if a not in member.constraints.excluded_agents]
        if member.constraints.agent_id is not None:
            allowed = [a for a in allowed if a == member.constraints.agent_id]
        if member.is_spread:
            return sum(counts[a] for a in allowed)
        return max((counts[a] for a in allowed), default=0)

    def _single(self, member: Member, excluded: frozenset[str]) -> tuple[str, str]:
        limit, count = self._most(member), len(self._agents) - len(excluded)
        pool = f"pool {self._pool!r}"
        if member.constraints.agent_id is not None:
            return f"needs {member.slots} slots on agent {member.constraints.agent_id}", f"that agent has {limit}"
        if count == 0 and not self._provides:
            return f"needs {member.slots} slots", f"no agent of {pool} may run it"
        if member.constraints.single_agent:
            return f"needs {member.slots} slots on one agent", f"the largest agent of {pool} has {limit}"
        if self._provides:
            return f"needs {member.slots} slots", f"all agents that {pool} could have together have {limit}"
        if count == 1:
            return f"needs {member.slots} slots", f"the only agent of {pool} has {limit}"
        return f"needs {member.slots} slots", f"all {count} agents of {pool} together have {limit}"

    def _candidates(self, member: Member) -> list[str]:
        index, constraints = self._now.index, member.constraints
        least = 1 if member.is_spread else member.slots
        names = index.placeable
        if constraints.agent_id is not None:
            names = {constraints.agent_id} & index.count.keys()
        return [a for a in names if index.count[a] >= least and a not in constraints.excluded_agents]


def _pins(shape: Shape) -> list[str | None]:
    return [member.constraints.agent_id for member in shape.members]
