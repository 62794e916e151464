"""Chooses agents for a request: one if it fits, otherwise the fewest; all slots or none."""

from collections.abc import Mapping, Sequence

from determined_master.scheduling.plan import Part
from determined_master.scheduling.view import AgentView, RequestView


def fit(
    request: RequestView, agents: Sequence[AgentView], free: Mapping[str, Sequence[int]], room: Mapping[str, int]
) -> tuple[Part, ...]:
    """Returns the parts in the order of ranks, larger ones first; empty if there is no room now. ``free`` are the free
    slots by agent, ``room`` the containers without slots that an agent may still run."""
    if request.groups[0].constraints.agent_id is not None:
        here = [a for a in agents if a.is_connected and a.id == request.groups[0].constraints.agent_id]
    else:
        here = [a for a in agents if a.placeable]
    alone = _best_fit(request.slots, here, free, room)
    if alone is not None:
        return (Part(alone.id, tuple(free[alone.id][: request.slots])),)
    if request.groups[0].constraints.single_agent or request.slots == 0:
        return ()
    return _several(request.slots, here, free)


def could_ever_fit(request: RequestView, agents: Sequence[AgentView]) -> bool:
    """Returns whether the agents could hold the request if all were idle and enabled."""
    return most(request, agents) >= request.slots


def most(request: RequestView, agents: Sequence[AgentView]) -> int:
    """Returns the most slots that such a request could ever get from these agents."""
    totals = [a.total for a in agents]
    return max(totals) if request.groups[0].constraints.single_agent else sum(totals)


def _best_fit(
    slots: int, agents: Sequence[AgentView], free: Mapping[str, Sequence[int]], room: Mapping[str, int]
) -> AgentView | None:
    """Returns the agent that would be fullest, so that large requests find room later; the smaller id among equals."""
    candidates = [a for a in agents if len(free[a.id]) >= slots and (slots > 0 or room[a.id] > 0)]
    return min(candidates, key=lambda a: (len(free[a.id]) - slots, a.id), default=None)


def _several(slots: int, agents: Sequence[AgentView], free: Mapping[str, Sequence[int]]) -> tuple[Part, ...]:
    """Returns the fewest agents, with parts as equal as possible: the slowest agent limits all."""
    roomiest = sorted((a for a in agents if free[a.id]), key=lambda a: (-len(free[a.id]), a.id))
    chosen: list[AgentView] = []
    for agent in roomiest:
        chosen.append(agent)
        if sum(len(free[a.id]) for a in chosen) >= slots:
            break
    else:
        return ()
    left, parts = slots, []
    for place, agent in enumerate(reversed(chosen)):
        share = min(len(free[agent.id]), left // (len(chosen) - place))
        parts.append(Part(agent.id, tuple(free[agent.id][:share])))
        left -= share
    return tuple(sorted(parts, key=lambda part: (-len(part.slots), part.agent_id)))
