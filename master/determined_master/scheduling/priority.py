"""Fills a pool by priority, then position in the queue. A request that waits for slots holds back all worse ones."""

from collections.abc import Iterator

from determined_master.scheduling.draft import Draft
from determined_master.scheduling.lane import Lane
from determined_master.scheduling.preemption import Victim, victims_of_this_decision, wait_for_room
from determined_master.scheduling.request_queue import Line, ShapeQueue, walk
from determined_master.scheduling.view import RequestView


def fill(draft: Draft) -> None:
    """Decides for all requests of the pool."""
    is_needed = True
    while draft.begin_round(is_needed=is_needed):
        queues = draft.state.queue.shapes.values()
        _fill_queue(draft, [queue for queue in queues if queue.shape.slots])
        _fill_queue(draft, [queue for queue in queues if not queue.shape.slots])
        # Without reservations a second round finds what the first one found.
        is_needed = draft.is_changed and (bool(draft.reserved) or draft.rounds > 1)


def _fill_queue(draft: Draft, queues: list[ShapeQueue]) -> None:
    """Decides for all requests with slots, or for all without: the one kind never waits for the other."""
    state = draft.state
    lane = Lane(draft.room.index, preempts=state.scheduler.preempts)
    passed_over: set[ShapeQueue | Line] = set()
    placed = draft.placed
    for request, line in walk(queues, passed_over):
        queue = line.shape_queue
        shape = queue.shape
        if request.allocation_id in placed:
            continue
        if state.is_impossible(queue):
            passed_over.add(queue)
            continue
        if draft.is_held(request, shape.slots):
            passed_over.add(line)
            continue
        banned = lane.bans(request).start
        choices = None if lane.is_closed(banned, shape) else draft.fits(shape, banned)
        if choices is not None:
            draft.start(request, shape, choices)
            continue
        if state.scheduler.preempts and shape.slots:
            if wait_for_room(draft, request, queue, lane.bans(request), _victims(draft, request)):
                lane.close_for_reserved(state.usable_by(queue))
                continue
            if draft.is_expecting(request):
                lane.shut(state.usable_by(queue))
        passed_over.add(queue)
        lane.close(draft.stay_stuck(request, queue), request.rank)


def _victims(draft: Draft, request: RequestView) -> Iterator[Victim]:
    """Yields what is worse than the request, the worst first."""
    rank = request.rank
    new = sorted(victims_of_this_decision(draft), key=lambda v: v.key) if draft.placed else []
    for running in draft.state.victims.descending():
        if running.rank <= rank:
            break
        if running.allocation_id in draft.releases:
            continue
        while new and new[-1].key > (running.rank, running.allocation_id):
            yield new.pop()
        yield Victim.of(running)
    while new and new[-1].rank > rank:
        yield new.pop()
