"""Explains why a request waits: what is in its way, when it should start, and which change would start it now."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from determined_master.scheduling.pool_state import PoolState
from determined_master.scheduling.reasons import Summary
from determined_master.scheduling.scheduler import Scheduler
from determined_master.scheduling.view import PoolView, RequestView
from determined_master.scheduling.what_if import Changes, changes_that_start


@dataclass(frozen=True)
class Blocker:
    """``why``: ``limit``, it counts for a limit that holds the request back; ``ahead``, it comes first and waits for
    the same slots; ``leaving``, it was asked to leave and the request gets its slots; ``running``, it holds slots that
    the request could use."""

    allocation_id: str
    why: Literal["limit", "ahead", "leaving", "running"]
    seconds_left: float | None
    """Expected time until it has left; None if unknown, or if it waits itself."""


@dataclass(frozen=True)
class Explanation:
    allocation_id: str
    reason: str
    """The reason for waiting or for a refusal; empty if the request starts now."""
    ahead: int
    """Number of requests before it in the queue of its pool."""
    blockers: tuple[Blocker, ...]
    starts_in_seconds: float | None
    """Estimated time to its start; None if unknown."""
    unknown: str
    """Why the time to its start is unknown; empty if it is known."""
    changes: Changes
    """Changes each of which, alone, starts it now."""


def explain(
    pool: PoolView, allocation_id: str, others: Sequence[PoolView] = (), *, ahead: int | None = None
) -> Explanation:
    """Explains a request of ``pool``. ``others``: pools to which it could be moved. ``ahead``: number of requests that
    come before it, if the pool is an excerpt that lacks some of them."""
    scheduler = Scheduler.of(pool)
    state = scheduler.pool
    request = state.queue[allocation_id]
    decided = scheduler.decide()
    refusal = next((r.reason for r in decided.refusals if r.allocation_id == allocation_id), None)
    if ahead is None:
        ahead = state.queue.count_before(request.order)
    if any(placement.allocation_id == allocation_id for placement in decided.placements):
        return Explanation(allocation_id, "", ahead, (), 0.0, "", Changes())
    changes = changes_that_start(scheduler, request, others)
    if refusal is not None:
        return Explanation(allocation_id, refusal, ahead, (), None, "the pool can never hold it", changes)
    reason, blockers = scheduler.reason_for(allocation_id, ahead), _blockers(scheduler, request)
    seconds, unknown = _estimate(scheduler, request)
    return Explanation(allocation_id, reason, ahead, blockers, seconds, unknown, changes)


def _blockers(scheduler: Scheduler, request: RequestView) -> tuple[Blocker, ...]:
    state, summary = scheduler.pool, scheduler.summary()
    if request.allocation_id in summary.reserved:
        return tuple(_blocker(state, name, "leaving") for name in summary.reserved[request.allocation_id])
    of_job, of_user = summary.of_job.get(request.job_id, 0), summary.of_user.get(request.user_id, 0)
    if state.is_held(request, request.slots, of_job, of_user):
        return _limiting(state, summary, request)
    usable = state.usable_by(state.queue.line_of(request.allocation_id).shape_queue)
    ahead = [
        stuck.request.allocation_id
        for stuck in summary.stuck
        if stuck.request.allocation_id != request.allocation_id
        and (stuck.request.order < request.order or state.scheduler.kind == "fair_share")
        and (stuck.request.slots > 0) == (request.slots > 0)
        and not usable.isdisjoint(stuck.usable)
    ]
    holding = [
        running.allocation_id
        for running in state.running.values()
        if any(part.agent_id in usable and bool(part.slots) == (request.slots > 0) for part in running.parts)
    ]
    found = [_blocker(state, name, "running") for name in holding]
    found.sort(key=lambda b: (b.seconds_left is None, b.seconds_left or 0.0, b.allocation_id))
    return (*(Blocker(name, "ahead", None) for name in ahead), *found)


def _limiting(state: PoolState, summary: Summary, request: RequestView) -> tuple[Blocker, ...]:
    """Returns what counts for the limit that holds the request: that of its job if it does, else that of its owner."""
    of_job = state.held.of_job.get(request.job_id, 0) + summary.of_job.get(request.job_id, 0)
    by_job = request.max_slots is not None and of_job + request.slots > request.max_slots
    counted = [
        running.allocation_id
        for running in state.running.values()
        if running.slots and (running.job_id == request.job_id if by_job else running.user_id == request.user_id)
    ]
    return tuple(_blocker(state, name, "limit") for name in counted)


def _blocker(state: PoolState, allocation_id: str, why: Literal["limit", "leaving", "running"]) -> Blocker:
    return Blocker(allocation_id, why, _seconds(state, allocation_id))


def _seconds(state: PoolState, allocation_id: str) -> float | None:
    running = state.running[allocation_id]
    if running.leaving and running.seconds_to_save is not None:
        return min(running.seconds_to_save, running.seconds_left or running.seconds_to_save)
    return running.seconds_left


def _estimate(scheduler: Scheduler, request: RequestView) -> tuple[float | None, str]:
    """Lets time pass in a copy of the pool: what runs ends as expected, what starts never ends, nothing new comes."""
    scheduler = Scheduler.of(scheduler.edit().view())
    state = scheduler.pool
    unknown = sorted(each.name for key, each in state.running.items() if _seconds(state, key) is None)
    ends = [(seconds, name) for name in state.running if (seconds := _seconds(state, name)) is not None]
    heapq.heapify(ends)
    now = 0.0
    while True:
        decided = scheduler.decide()
        if any(placement.allocation_id == request.allocation_id for placement in decided.placements):
            return now, ""
        for placement in decided.placements:
            scheduler.start(placement)
        for release in decided.releases:
            scheduler.edit().leave(release.allocation_id, release.for_allocation_id)
            seconds = state.running[release.allocation_id].seconds_to_save
            if seconds is not None:
                heapq.heappush(ends, (now + seconds, release.allocation_id))
        for refusal in decided.refusals:
            scheduler.edit().remove(refusal.allocation_id)
        while ends and ends[0][1] not in state.running:
            heapq.heappop(ends)
        if not ends:
            break
        now, ended = heapq.heappop(ends)
        scheduler.edit().end(ended)
    provided = state.scheduler.provider_can_add
    if provided is not None and (provided.launches.starting or not state.agents):
        return None, "nobody knows how long the start of an agent takes"
    if not state.agents:
        return None, "nobody knows when an agent joins the pool"
    if unknown:
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        return None, f"nobody knows how long {unknown[0]}{more} will run"
    return None, "it starts after others that have not started, and nobody knows how long those will run"
