"""Fills a pool by priority, then position in the queue. A request that waits for slots holds back all worse ones."""

from collections.abc import Iterator
from heapq import merge
from operator import attrgetter
from typing import Any

from determined_master.scheduling.backfill import Backfill
from determined_master.scheduling.draft import Draft
from determined_master.scheduling.fitting import Choice, fit
from determined_master.scheduling.preemption import Victim, victims_of_this_decision, wait_for_room
from determined_master.scheduling.request_queue import Line, ShapeQueue, walk
from determined_master.scheduling.shapes import Shape
from determined_master.scheduling.view import RequestView

BY_KEY = attrgetter("key")


def fill(draft: Draft) -> None:
    """Decides for all requests of the pool."""
    shapes = draft.pool.shapes()
    while draft.begin_round():
        if shapes.slotted:
            _fill_queue(draft, shapes.slotted, 0 if draft.is_complete else shapes.least)
        if shapes.zero_slots or draft.is_complete:
            draft.choose_reserved()
        if shapes.zero_slots:
            _fill_queue(draft, shapes.zero_slots, 0)
        if not draft.is_unsettled:
            break


def _fill_queue(draft: Draft, queues: list[ShapeQueue], least: int) -> None:
    """Decides for all requests with slots, or for all without: the one kind never waits for the other. The pass ends
    when fewer than ``least`` slots are free and nothing can be preempted."""
    state, placed, index = draft.pool, draft.placed, draft.room.index
    preempts = state.scheduler.preempts
    backfill = Backfill(draft, preempts=preempts)
    may_wait = preempts and queues[0].shape.slots > 0
    worst = state.victims.worst_rank() if may_wait else None
    is_first_round = draft.rounds == 1
    passed_over: set[ShapeQueue | Line] = set()
    for request, line in walk(queues, passed_over):
        queue = line.shape_queue
        shape = queue.shape
        if not is_first_round and request.allocation_id in placed:
            continue
        if line.has_limit and draft.is_held(request, shape.slots):
            passed_over.add(line)
            continue
        # Within a round, what was placed is not worse than what comes later.
        has_new = not is_first_round and may_wait and bool(placed)
        has_worse = has_new or (worst is not None and worst > request.rank)
        may_come = has_worse or (may_wait and bool(state.leaving or draft.releases))
        reach = draft.upper_bound_soon() if may_come else index.total
        if reach < least and not has_worse:
            break
        choices = None
        if shape.slots <= reach or shape.is_pinned:
            if draft.unchosen is not None:
                draft.choose_reserved()
                reach = draft.upper_bound_soon()
            choices = _fit_now(draft, backfill, request, shape)
        if choices is not None:
            draft.start(request, shape, choices)
            if not may_come and index.total < least:
                # Nor can anything come for the others: they are worse.
                break
            continue
        if may_come and _make_room(draft, backfill, request, queue, reach, has_new=has_new, has_worse=has_worse):
            continue
        passed_over.add(queue)
        backfill.close(queue, state.usable_by(queue), request)
        if draft.is_complete:
            draft.stuck.append((request, queue))


def _fit_now(draft: Draft, backfill: Backfill, request: RequestView, shape: Shape) -> tuple[Choice, ...] | None:
    """Returns slots for the request that are free now; None if there are none, or only such as are kept for others."""
    banned = backfill.bans(request).start
    if banned and backfill.is_closed(banned, shape):
        return None
    return fit(shape, draft.room, banned)


def _make_room(
    draft: Draft,
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
    usable = draft.pool.usable_by(queue)
    if has_new or _may_suffice(draft, request, queue.shape, reach, has_worse=has_worse):
        victims = _worse(draft, request.rank, has_new=has_new) if has_worse else ()
        if wait_for_room(draft, request, queue, backfill.bans(request), victims):
            backfill.close_for_reserved(usable)
            return True
    if draft.is_expecting(request):
        backfill.shut(usable)
    return False


def _may_suffice(draft: Draft, request: RequestView, shape: Shape, reach: int, *, has_worse: bool) -> bool:
    """Returns False if the request would not fit when all that is leaving or worse has left. ``reach``: no less than
    the slots that are free soon. What was placed in this decision does not count as worse."""
    missing = 0 if shape.is_pinned else shape.slots - reach
    if missing > 0 and has_worse:
        return draft.pool.victims.hold(missing, request.rank, draft.releases)
    return missing <= 0


def _worse(draft: Draft, rank: tuple[Any, ...], *, has_new: bool) -> Iterator[Victim]:
    """Returns what is worse than the rank, the worst first. ``has_new``: what was placed in this decision may be."""
    running = draft.pool.victims.worse_than(rank, without=draft.releases)
    if not has_new:
        return running
    new = sorted(victims_of_this_decision(draft), key=BY_KEY, reverse=True)
    return merge(running, [victim for victim in new if victim.key[:-1] > rank], key=BY_KEY, reverse=True)
