"""Placement by priority, then age. Once something did not fit, nothing behind it in a worse priority starts."""

from determined_master.scheduling.fitting import best_fit, could_ever_fit
from determined_master.scheduling.plan import Placement, Plan, Refusal
from determined_master.scheduling.view import PoolView


def plan(pool: PoolView) -> Plan:
    """Pure. Every slot of ``pool`` is given at most once; nothing is taken from a running allocation."""
    free = {a.id: list(a.free) for a in pool.agents}
    placements: list[Placement] = []
    refusals: list[Refusal] = []
    waiting: dict[str, str] = {}
    blocked_at: int | None = None
    for place, request in enumerate(sorted(pool.waiting, key=lambda r: r.order)):
        if not pool.agents:
            waiting[request.allocation_id] = f"pool {pool.name!r} has no agent yet"
            continue
        if not could_ever_fit(request.slots, pool.agents):
            most = max(a.total for a in pool.agents)
            refusals.append(
                Refusal(
                    request.allocation_id,
                    f"asks for {request.slots} slots on one agent, but the largest agent of pool "
                    f"{pool.name!r} has {most}; lower resources.slots_per_trial to {most} or less",
                )
            )
            continue
        if request.slots > 0 and blocked_at is not None and request.priority > blocked_at:
            waiting[request.allocation_id] = f"behind a waiting trial of better priority {blocked_at}"
            continue
        agent = best_fit(request.slots, pool.agents, free)
        if agent is None:
            if blocked_at is None:
                blocked_at = request.priority
            waiting[request.allocation_id] = _why(request.slots, pool, free, place)
            continue
        slots = tuple(free[agent.id][: request.slots])
        del free[agent.id][: request.slots]
        placements.append(Placement(request.allocation_id, agent.id, slots))
    return Plan(tuple(placements), tuple(refusals), waiting)


def _why(slots: int, pool: PoolView, free: dict[str, list[int]], place: int) -> str:
    total = sum(a.total for a in pool.agents)
    idle = sum(len(free[a.id]) for a in pool.agents if a.placeable)
    absent = sum(not a.placeable for a in pool.agents)
    text = f"needs {slots} slot{'s' if slots != 1 else ''} on one agent; {idle} of {total} free in pool {pool.name!r}"
    if place:
        text += f"; {place} ahead"
    if absent:
        text += f"; {absent} agent{'s' if absent != 1 else ''} disabled or away"
    return text
