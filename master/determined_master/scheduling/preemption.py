"""Chooses which running allocations leave for a request: the worst, and none that is not needed."""

from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from determined_master.scheduling.backfill import Bans
from determined_master.scheduling.fitting import fit, is_room
from determined_master.scheduling.plan import Part, Release
from determined_master.scheduling.request_queue import ShapeQueue
from determined_master.scheduling.scheduling_decision import SchedulingDecision
from determined_master.scheduling.shapes import Shape
from determined_master.scheduling.view import NO_LIMIT, RequestView, RunningView


class NewVictim(NamedTuple):
    """What was placed in this decision and could make room for something better. ``key``: see ``RunningView``."""

    key: tuple[Any, ...]
    allocation_id: str
    job_id: str
    slots: int
    parts: tuple[Part, ...]


Victim = RunningView | NewVictim
"""What could make room; the larger its ``key``, the sooner it leaves."""
Leaving = tuple[Victim, list[tuple[str, int]]]
"""A victim with the slots that it gives, by agent."""


def victims_of_this_decision(decision: SchedulingDecision) -> list[Victim]:
    """Returns what was placed in this decision and could be preempted at once."""
    victims: list[Victim] = []
    for request, slots in decision.started():
        if request.preemptible and slots:
            name = request.allocation_id
            victims.append(NewVictim((*request.rank, name), name, request.job_id, slots, decision.placed[name].parts))
    return victims


def wait_for_room(
    decision: SchedulingDecision, request: RequestView, queue: ShapeQueue, bans: Bans, victims: Iterable[Victim]
) -> bool:
    """Reserves slots that are becoming free for a request that does not fit now, and requests the releases that it
    needs. Returns False if even those would not do.

    ``victims`` are allocations that may leave for it, the worst first."""
    shape, banned = queue.shape, bans.wait
    decision.choose_reserved()
    if decision.has_leaving:
        can_count = shape.is_anywhere and not banned
        if decision.total_soon() >= shape.slots if can_count else is_room(shape, decision.soon, banned):
            decision.reserve(request, shape, banned)
            return True
        if decision.is_expecting(request):
            return False
    if not victims:
        return False
    needed = _needed(decision, request, queue, banned, victims)
    if needed is None:
        return False
    for victim in needed:
        if victim.allocation_id in decision.placed:
            decision.take_back(victim.allocation_id)
        else:
            decision.release(Release(victim.allocation_id, request.allocation_id, _reason(request, victim)))
    if shape.is_pinned or shape.slots <= decision.room.index.total:
        choices = fit(shape, decision.room, bans.start)
        if choices is not None:
            decision.start(request, shape, choices)
            return True
    decision.reserve(request, shape, banned)
    return True


def _needed(
    decision: SchedulingDecision,
    request: RequestView,
    queue: ShapeQueue,
    banned: Collection[str],
    victims: Iterable[Victim],
) -> list[Victim] | None:
    """Returns a minimal set of victims, or None if no set suffices.

    First adds victims, the worst first, until the request fits. Then drops every victim without which it still fits:
    first those that have no slots on the chosen agents, then the best. The slots of the returned allocations that run
    are added to ``decision.soon``.
    """
    shape, usable = queue.shape, decision.pool.usable_by(queue)
    iterator: Iterator[Victim] = iter(victims)
    is_everywhere = len(usable) == len(decision.room.index.placeable) and not shape.is_pinned
    can_count = is_everywhere and shape.is_anywhere and not banned and not decision.has_soon
    counted = _count(decision, shape, iterator, can_count=can_count)
    if counted is None:
        return None
    chosen, is_exact = counted
    if is_exact:
        return chosen
    added, is_enough = _add(decision, shape, usable, banned, chain(chosen, iterator), is_everywhere=is_everywhere)
    if is_enough:
        added = _prune(decision, shape, banned, added)
    _settle(decision, added, is_enough=is_enough)
    return [victim for victim, _ in added] if is_enough else None


def _count(
    decision: SchedulingDecision, shape: Shape, victims: Iterator[Victim], *, can_count: bool
) -> tuple[list[Victim], bool] | None:
    """Takes victims until the slots of all agents together suffice. Returns None if they never do. Only totals are
    compared: to count for each agent is slow, and useless while not even the totals suffice. The flag is True if it is
    known already that the request fits and that no victim can be left out."""
    chosen: list[Victim] = []
    missing, least = 0, NO_LIMIT
    if not shape.is_pinned:
        missing = shape.slots - (decision.total_soon() if can_count else decision.upper_bound_soon())
    while missing > 0:
        victim = next(victims, None)
        if victim is None:
            return None
        count = decision.pool.count_coming(victim.parts) if can_count else victim.slots
        if count:
            missing -= count
            least = min(least, count)
            chosen.append(victim)
    # The surplus is smaller than what any victim gives, so none can be left out.
    return chosen, can_count and bool(chosen) and least > -missing


def _add(
    decision: SchedulingDecision,
    shape: Shape,
    usable: Collection[str],
    banned: Collection[str],
    victims: Iterator[Victim],
    *,
    is_everywhere: bool,
) -> tuple[list[Leaving], bool]:
    """Counts the slots of one victim after the other as coming, until there is room. Returns those that were counted,
    and False if there is no room with all of them."""
    soon, index = decision.soon, decision.soon.index
    total = index.total if is_everywhere else sum(index.count[a] for a in usable)
    added: list[Leaving] = []
    for victim in victims:
        counts = [(a, n) for a, n in decision.pool.coming(victim.parts) if a in usable and n]
        if not counts:
            continue
        for agent_id, count in counts:
            index.change(agent_id, count)
            total += count
        added.append((victim, counts))
        is_larger = shape.is_spread or any(index.count[a] >= shape.largest for a, _ in counts)
        may_fit = total >= shape.slots and (is_larger or len(shape.members) > 1)
        if may_fit and is_room(shape, soon, banned):
            return added, True
    return added, False


def _settle(decision: SchedulingDecision, added: Iterable[Leaving], *, is_enough: bool) -> None:
    """Corrects ``soon`` after ``_add``: takes back the slots of victims that do not leave, and adds those of leaving
    ones on agents that the request cannot use."""
    index = decision.soon.index
    for victim, counts in added:
        # Those placed in this decision are given back by ``take_back``.
        if not is_enough or victim.allocation_id in decision.placed:
            for agent_id, count in counts:
                index.change(agent_id, -count)
        elif len(counts) < len(victim.parts):
            # Slots on agents that the request cannot use become free too.
            for agent_id, count in decision.pool.coming(victim.parts):
                if count and (agent_id, count) not in counts:
                    index.change(agent_id, count)


def _prune(
    decision: SchedulingDecision,
    shape: Shape,
    banned: Collection[str],
    added: list[Leaving],
) -> list[Leaving]:
    if len(added) == 1:
        return added
    soon, index = decision.soon, decision.soon.index
    chosen = {agent_id for agent_id, _, _ in fit(shape, soon, banned) or ()}
    candidates = [
        (not chosen.isdisjoint([agent_id for agent_id, _ in counts]), victim.key, place)
        for place, (victim, counts) in enumerate(added)
    ]
    candidates.sort()
    kept = []
    for _, _, place in candidates:
        counts = added[place][1]
        for agent_id, count in counts:
            index.change(agent_id, -count)
        if not is_room(shape, soon, banned):
            for agent_id, count in counts:
                index.change(agent_id, count)
            kept.append(place)
    return [added[place] for place in sorted(kept)]


def _reason(request: RequestView, victim: Victim) -> str:
    if victim.key[0] != request.priority:
        return f"preempted for {request.name}, which has a better priority ({request.priority})"
    return f"preempted for {request.name}, which comes first in the queue or has less than its share"
