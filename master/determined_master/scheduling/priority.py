"""Fills a pool by priority, then position in the queue. A request that waits for slots holds back all worse ones."""

from collections.abc import Iterator
from heapq import merge
from operator import attrgetter
from typing import Any

from determined_master.scheduling.backfill import Backfill
from determined_master.scheduling.fitting import Choice, fit
from determined_master.scheduling.preemption import Victim, victims_of_this_decision, wait_for_room
from determined_master.scheduling.request_queue import QueueLine, ShapeQueue, walk
from determined_master.scheduling.scheduling_decision import SchedulingDecision
from determined_master.scheduling.shapes import Shape
from determined_master.scheduling.view import RequestView

BY_KEY = attrgetter("key")


def decide_placements(decision: SchedulingDecision) -> None:
    """Decides for all requests of the pool."""
    shapes = decision.pool.shapes()
    while decision.begin_round():
        if shapes.slotted:
            _fill_queue(decision, shapes.slotted, 0 if decision.is_complete else shapes.least)
        if shapes.zero_slots or decision.is_complete:
            decision.choose_reserved()
        if shapes.zero_slots:
            _fill_queue(decision, shapes.zero_slots, 0)
        if not decision.is_unsettled:
            break


def _fill_queue(decision: SchedulingDecision, queues: list[ShapeQueue], least: int) -> None:
    """Decides for all requests with slots, or for all without: the one kind never waits for the other. The pass ends
    when fewer than ``least`` slots are free and nothing can be preempted."""
    state, placed, index = decision.pool, decision.placed, decision.room.index
    preempts = state.scheduler.preempts
    backfill = Backfill(decision, preempts=preempts)
    may_wait = preempts and queues[0].shape.slots > 0
    worst = state.victims.worst_rank() if may_wait else None
    is_first_round = decision.rounds == 1
    passed_over: set[ShapeQueue | QueueLine] = set()
    for request, line in walk(queues, passed_over):
        queue = line.shape_queue
        shape = queue.shape
        if not is_first_round and request.allocation_id in placed:
            continue
        if line.has_limit and decision.is_held(request, shape.slots):
            passed_over.add(line)
            continue
        # Within a round, what was placed is not worse than what comes later.
        has_new = not is_first_round and may_wait and bool(placed)
        has_worse = has_new or (worst is not None and worst > request.rank)
        may_come = has_worse or (may_wait and bool(state.leaving or decision.releases))
        reach = decision.upper_bound_soon() if may_come else index.total
        if reach < least and not has_worse:
            break
        choices = None
        if shape.slots <= reach or shape.is_pinned:
            if decision.unchosen is not None:
                decision.choose_reserved()
                reach = decision.upper_bound_soon()
            choices = _fit_now(decision, backfill, request, shape)
        if choices is not None:
            decision.start(request, shape, choices)
            if not may_come and index.total < least:
                # Nor can anything come for the others: they are worse.
                break
            continue
        if may_come and _make_room(decision, backfill, request, queue, reach, has_new=has_new, has_worse=has_worse):
            continue
        passed_over.add(queue)
        backfill.close(queue, state.usable_by(queue), request)
        if decision.is_complete:
            decision.stuck.append((request, queue))


def _fit_now(
    decision: SchedulingDecision, backfill: Backfill, request: RequestView, shape: Shape
) -> tuple[Choice, ...] | None:
    """Returns slots for the request that are free now; None if there are none, or only such as are kept for others."""
    banned = backfill.bans(request).start
    if banned and backfill.is_closed(banned, shape):
        return None
    return fit(shape, decision.room, banned)


def _make_room(
    decision: SchedulingDecision,
    backfill: Backfill,
    request: RequestView,
    queue: ShapeQueue,
    reach: int,
    *,
    has_new: bool,
    has_worse: bool,
) -> bool:
    """Reserves slots that are becoming free for the request, and lets what is worse leave for it. Returns False if that
    would not do."""
    usable = decision.pool.usable_by(queue)
    if has_new or _may_suffice(decision, request, queue.shape, reach, has_worse=has_worse):
        victims = _worse(decision, request.rank, has_new=has_new) if has_worse else ()
        if wait_for_room(decision, request, queue, backfill.bans(request), victims):
            backfill.close_for_reserved(usable)
            return True
    if decision.is_expecting(request):
        backfill.shut(usable)
    return False


def _may_suffice(
    decision: SchedulingDecision, request: RequestView, shape: Shape, reach: int, *, has_worse: bool
) -> bool:
    """Returns False if the request would not fit when all that is leaving or worse has left. ``reach``: no less than
    the slots that are free soon. What was placed in this decision does not count as worse."""
    missing = 0 if shape.is_pinned else shape.slots - reach
    if missing > 0 and has_worse:
        return decision.pool.victims.hold(missing, request.rank, decision.releases)
    return missing <= 0


def _worse(decision: SchedulingDecision, rank: tuple[Any, ...], *, has_new: bool) -> Iterator[Victim]:
    """Returns what is worse than the rank, the worst first. ``has_new``: what was placed in this decision may be."""
    running = decision.pool.victims.worse_than(rank, without=decision.releases)
    if not has_new:
        return running
    new = sorted(victims_of_this_decision(decision), key=BY_KEY, reverse=True)
    return merge(running, [victim for victim in new if victim.key[:-1] > rank], key=BY_KEY, reverse=True)
