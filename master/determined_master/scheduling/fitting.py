"""Which agent a request goes to: the one that it leaves fullest, so that big requests find room later."""

from collections.abc import Mapping, Sequence

from determined_master.scheduling.view import AgentView


def best_fit(slots: int, agents: Sequence[AgentView], free: Mapping[str, Sequence[int]]) -> AgentView | None:
    """The placeable agent with enough free slots and the fewest left over; the smaller id among equals."""
    candidates = [a for a in agents if a.placeable and len(free[a.id]) >= slots]
    return min(candidates, key=lambda a: (len(free[a.id]) - slots, a.id), default=None)


def could_ever_fit(slots: int, agents: Sequence[AgentView]) -> bool:
    """Whether any agent, were it idle and enabled, would hold the request."""
    return any(a.total >= slots for a in agents)
