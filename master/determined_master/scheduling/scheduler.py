"""Places by priority, then age. A request that does not fit holds back all requests of worse priority."""

from determined_master.scheduling.fitting import could_ever_fit, fit, most
from determined_master.scheduling.plan import Placement, Plan, Refusal
from determined_master.scheduling.view import PoolView, RequestView


def plan(pool: PoolView) -> Plan:
    """Plans a pool. Pure. Every slot is assigned at most once; running allocations keep their slots."""
    free = {a.id: list(a.free) for a in pool.agents}
    room = {a.id: a.zero_slot_room for a in pool.agents}
    placements: list[Placement] = []
    refusals: list[Refusal] = []
    waiting: dict[str, str] = {}
    blocked_at: int | None = None
    for place, request in enumerate(sorted(pool.waiting, key=lambda r: r.order)):
        if not pool.agents:
            waiting[request.allocation_id] = f"pool {pool.name!r} has no agent yet"
            continue
        if not could_ever_fit(request, pool.agents):
            refusals.append(Refusal(request.allocation_id, _never(request, pool)))
            continue
        if request.slots > 0 and blocked_at is not None and request.priority > blocked_at:
            waiting[request.allocation_id] = f"queued behind a trial of higher priority ({blocked_at})"
            continue
        parts = fit(request, pool.agents, free, room)
        if not parts and request.slots == 0:
            # It needs no slot, so it blocks no request that does.
            waiting[request.allocation_id] = _why_without_slots(request, pool)
            continue
        if not parts:
            if blocked_at is None:
                blocked_at = request.priority
            waiting[request.allocation_id] = _why(request, pool, free, place)
            continue
        for part in parts:
            room[part.agent_id] -= not part.slots
            del free[part.agent_id][: len(part.slots)]
        placements.append(Placement(request.allocation_id, parts))
    return Plan(tuple(placements), (), tuple(refusals), waiting)


def _never(request: RequestView, pool: PoolView) -> str:
    limit = most(request, pool.agents)
    if request.groups[0].constraints.single_agent:
        asked, have = "on one agent", f"the largest agent of pool {pool.name!r} has {limit}"
    else:
        asked, have = "", f"all {len(pool.agents)} agents of pool {pool.name!r} together have {limit}"
        if len(pool.agents) == 1:
            have = f"the only agent of pool {pool.name!r} has {limit}"
    return (
        f"needs {request.slots} slots {asked}".rstrip()
        + f", but {have}; lower resources.slots_per_trial to {limit} or less, or add agents"
    )


def _why_without_slots(request: RequestView, pool: PoolView) -> str:
    if request.groups[0].constraints.agent_id is not None:
        only = next((a for a in pool.agents if a.id == request.groups[0].constraints.agent_id and a.is_connected), None)
        if only is None:
            return f"its agent {request.groups[0].constraints.agent_id} is not connected"
        return f"agent {only.id} runs the maximum number of containers without slots (max_zero_slot_containers)"
    absent = sum(not a.placeable for a in pool.agents)
    if absent == len(pool.agents):
        return f"every agent of pool {pool.name!r} is disabled or disconnected"
    text = f"every agent of pool {pool.name!r} runs the maximum number of containers without slots "
    return text + "(max_zero_slot_containers)" + (f"; {absent} disabled or disconnected" if absent else "")


def _why(request: RequestView, pool: PoolView, free: dict[str, list[int]], place: int) -> str:
    total = sum(a.total for a in pool.agents)
    idle = sum(len(free[a.id]) for a in pool.agents if a.placeable)
    absent = sum(not a.placeable for a in pool.agents)
    text = f"needs {request.slots} slot{'s' if request.slots != 1 else ''}"
    text += " on one agent" if request.groups[0].constraints.single_agent else ""
    text += f"; {idle} of {total} free in pool {pool.name!r}"
    if place:
        text += f"; {place} ahead"
    if absent:
        text += f"; {absent} agent{'s' if absent != 1 else ''} disabled or disconnected"
    unusable = [reason for a in pool.agents if a.placeable for reason in a.unusable]
    if unusable:
        text += f"; {unusable[0]}" + (f" ({len(unusable) - 1} more like it)" if len(unusable) > 1 else "")
    return text
