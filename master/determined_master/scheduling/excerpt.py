"""A part of a pool that decides as the whole pool does, so that what is tried with a copy does not cost the queue.

A decision takes the requests of a line in their order, and every one that it passes gets or reserves slots, until the
first that does not fit. It reads no more of a line than the pool has slots.
"""

from collections.abc import Iterator
from itertools import islice, takewhile

from determined_master.scheduling.pool_state import PoolState
from determined_master.scheduling.request_queue import QueueLine
from determined_master.scheduling.view import PoolView, RequestView

SPARE = 8
"""So many requests more than needed are taken of each line."""


def excerpt(state: PoolState, allocation_id: str | None = None, *, slots: int = 0, room: int = 0) -> PoolView:
    """Returns the pool with so much of each line that decisions are those of the whole pool: as it is, while what runs
    ends and what is placed runs on, with any one job removed, and, if ``allocation_id`` is given, with the job of that
    request moved to any place. ``slots`` and ``room`` (of containers without slots): what agents may get in addition.
    """
    request = state.queue[allocation_id] if allocation_id is not None else None
    slots += sum(agent.total for agent in state.agents.values())
    room += sum(agent.zero_slot_room for agent in state.agents.values()) + len(state.running)
    requests: dict[str, RequestView] = {}
    for queue in state.queue.shapes.values():
        most = 2 * (slots // queue.shape.slots if queue.shape.slots else room) + SPARE
        for line in queue.lines.values():
            for each in _first(line, most):
                requests[each.allocation_id] = each
            if request is not None:
                for each in _of_job(line, request, most):
                    requests[each.allocation_id] = each
    if request is not None:
        requests[request.allocation_id] = request
    agents = tuple(state.agent(agent_id) for agent_id in state.agents)
    return PoolView(state.name, agents, tuple(requests.values()), tuple(state.running.values()), state.scheduler)


def _first(line: QueueLine, most: int) -> Iterator[RequestView]:
    """Yields the first requests of a line: ``most`` if those of any one job are left out."""
    if len(line.requests) <= 2 * most:
        yield from line.requests
        return
    of_job: dict[str, int] = {}
    left = 2 * most
    for request in line.requests:
        count = of_job.get(request.job_id, 0)
        if count < most:
            of_job[request.job_id] = count + 1
            yield request
            left -= 1
            if not left:
                return


def _of_job(line: QueueLine, request: RequestView, most: int) -> Iterator[RequestView]:
    """Yields the first requests of the job of ``request`` in a line. They all have its rank."""
    of_rank = takewhile(lambda each: each.rank == request.rank, line.requests.irange_key(request.rank))
    yield from islice((each for each in of_rank if each.job_id == request.job_id), most)
