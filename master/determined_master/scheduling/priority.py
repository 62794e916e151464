"""Fills a pool by priority, then position in the queue. A request that waits for slots holds back all worse ones."""

from collections.abc import Iterable, Iterator
from typing import Any

from determined_master.scheduling.backfill import Backfill
from determined_master.scheduling.draft import Draft
from determined_master.scheduling.fitting import fit
from determined_master.scheduling.preemption import Victim, victims_of_this_decision, wait_for_room
from determined_master.scheduling.request_queue import Line, ShapeQueue, walk
from determined_master.scheduling.view import RequestView


def fill(draft: Draft) -> None:
    """Decides for all requests of the pool."""
    is_needed = True
    while draft.begin_round(is_needed=is_needed):
        shapes = draft.pool.shapes()
        if shapes.slotted:
            _fill_queue(draft, shapes.slotted, 0 if draft.is_complete else shapes.least)
        if shapes.zero_slots:
            _fill_queue(draft, shapes.zero_slots, 0)
        is_needed = draft.is_unsettled


def _fill_queue(draft: Draft, queues: list[ShapeQueue], least: int) -> None:
    """Decides for all requests with slots, or for all without: the one kind never waits for the other. The pass ends
    when fewer than ``least`` slots are free and nothing can be preempted."""
    state = draft.pool
    backfill = Backfill(draft.room.index, preempts=state.scheduler.preempts)
    preempts = state.scheduler.preempts
    passed_over: set[ShapeQueue | Line] = set()
    placed, index = draft.placed, draft.room.index
    usable_by = state.usable_by
    for request, line in walk(queues, passed_over):
        queue = line.shape_queue
        shape = queue.shape
        if request.allocation_id in placed:
            continue
        if line.has_limit and draft.is_held(request, shape.slots):
            passed_over.add(line)
            continue
        victims = _victims(draft, request) if preempts and shape.slots else ()
        may_come = bool(victims) or draft.has_leaving
        if index.total < least and not victims and (not may_come or draft.upper_bound_soon() < least):
            break
        bans = backfill.bans(request)
        choices = None if backfill.is_closed(bans.start, shape) else fit(shape, draft.room, bans.start)
        if choices is not None:
            draft.start(request, shape, choices)
            continue
        if may_come and preempts and shape.slots:
            if wait_for_room(draft, request, queue, bans, victims):
                backfill.close_for_reserved(usable_by(queue))
                continue
            if draft.is_expecting(request):
                backfill.shut(usable_by(queue))
        passed_over.add(queue)
        backfill.close(draft.stay_stuck(request, queue), request.rank)


def _victims(draft: Draft, request: RequestView) -> Iterable[Victim]:
    """Returns what is worse than the request, the worst first."""
    rank, running = request.rank, draft.pool.victims
    # Within a round, what was placed is not worse than what comes later.
    has_new = draft.rounds > 1 and bool(draft.placed)
    if not has_new and (not running or running.entries[-1][0][0] <= rank):
        return ()
    return _worse(draft, rank, victims_of_this_decision(draft) if has_new else [])


def _worse(draft: Draft, rank: tuple[Any, ...], new: list[Victim]) -> Iterator[Victim]:
    new.sort(key=lambda victim: victim.key)
    for key, running in draft.pool.victims.descending():
        if key[0] <= rank:
            break
        if running.allocation_id in draft.releases:
            continue
        while new and new[-1].key > key:
            yield new.pop()
        yield Victim(key, running.allocation_id, running.job_id, running.slots, running.parts)
    while new and new[-1].key[0] > rank:
        yield new.pop()
