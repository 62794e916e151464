"""Chooses agents for a request: one if it fits, otherwise the fewest; all tasks of a request or none."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Literal

from determined_master.scheduling.agent_index import AgentIndex
from determined_master.scheduling.shapes import Member, Shape

Fitting = Literal["best", "worst"]


Choice = tuple[str, int, int]
"""An agent, the slots of it that one task gets, and the group of the task. Every decision makes many: a plain tuple is
made several times as fast as a named one."""


@dataclass(slots=True)
class Room:
    """Where slots are counted, and how many containers without slots each agent may still run."""

    index: AgentIndex
    zero_slots: Mapping[str, int]
    fitting: Fitting


def fit(shape: Shape, room: Room, banned: Collection[str] = ()) -> tuple[Choice, ...] | None:
    """Returns the choices in the order of groups and ranks, larger parts first; None if there is no room."""
    if shape.only is not None:
        return _fit_member(shape.only, room, banned, {})
    index = room.index
    chosen: list[Choice] = []
    started: dict[str, int] = {}
    is_complete = True
    for member in shape.members:
        choices = _fit_member(member, room, banned, started)
        if choices is None:
            is_complete = False
            break
        for agent_id, slots, _ in choices:
            index.change(agent_id, -slots)
            started[agent_id] = started.get(agent_id, 0) + (slots == 0)
        chosen += choices
    for agent_id, slots, _ in chosen:
        index.change(agent_id, slots)
    return tuple(sorted(chosen, key=itemgetter(2))) if is_complete else None


def is_room(shape: Shape, room: Room, banned: Collection[str] = ()) -> bool:
    """Returns whether ``fit`` would find places."""
    if shape.is_anywhere:
        return room.index.sum(banned) >= shape.slots
    return fit(shape, room, banned) is not None


def _fit_member(
    member: Member, room: Room, banned: Collection[str], started: Mapping[str, int]
) -> tuple[Choice, ...] | None:
    slots, index = member.slots, room.index
    if member.is_free:
        alone = index.choose(slots, banned, room.fitting) if index.total >= slots else None
    else:
        constraints = member.constraints
        if constraints.excluded_agents:
            banned = constraints.excluded_agents.union(banned)
        pinned = constraints.agent_id
        if slots == 0:
            alone = _for_zero_slots(pinned, room, banned, started)
        elif pinned is not None:
            alone = pinned if pinned not in banned and index.count.get(pinned, -1) >= slots else None
        else:
            alone = index.choose(slots, banned, room.fitting)
    if alone is not None:
        return ((alone, slots, member.group),)
    if not member.is_spread or index.total < slots:
        return None
    return _several(member, index, banned)


def _for_zero_slots(pinned: str | None, room: Room, banned: Collection[str], started: Mapping[str, int]) -> str | None:
    """Returns the fullest agent (the emptiest with worst fitting) that may run one more container without slots."""

    def has_room(agent_id: str) -> bool:
        return agent_id not in banned and room.zero_slots.get(agent_id, 0) > started.get(agent_id, 0)

    if pinned is not None:
        return pinned if has_room(pinned) else None
    sign = 1 if room.fitting == "best" else -1
    count = room.index.count
    return min((a for a in room.index.placeable if has_room(a)), key=lambda a: (sign * count[a], a), default=None)


def _several(member: Member, index: AgentIndex, banned: Collection[str]) -> tuple[Choice, ...] | None:
    """Returns the fewest agents, with parts as equal as possible: the slowest agent limits all."""
    chosen = index.choose_several(member.slots, banned)
    if chosen is None:
        return None
    group = member.group
    if sum([count for count, _ in chosen]) == member.slots:
        return tuple([(agent_id, count, group) for count, agent_id in chosen])
    left, agents, parts = member.slots, len(chosen), []
    for count, agent_id in reversed(chosen):
        share = min(count, left // agents)
        parts.append((-share, agent_id))
        left -= share
        agents -= 1
    parts.sort()
    return tuple([(agent_id, -share, group) for share, agent_id in parts])
