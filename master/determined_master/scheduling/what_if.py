"""Finds changes that start a request at once, each alone: the pool is changed, decided for, and changed back."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from determined_master.scheduling.pool_state import PoolState
from determined_master.scheduling.scheduler import Scheduler
from determined_master.scheduling.view import AgentView, PoolView, RequestView, RunningView

MIN_PRIORITY = 1


@dataclass(frozen=True)
class Changes:
    """Values with which the request starts now; None or empty if no value does."""

    slots: int | None = None
    """The most slots fewer than now, for each task of its only group with slots."""
    priority: int | None = None
    """The largest number below its job's priority."""
    max_slots: int | None = None
    """The smallest limit above its job's."""
    pools: tuple[str, ...] = ()
    """Other pools that would start it."""
    agents: tuple[str, ...] = ()
    """Disabled agents of which enabling one is enough."""
    slot_ids: tuple[tuple[str, int], ...] = ()
    """Disabled slots (agent and slot) of which enabling one is enough."""
    paused_jobs: tuple[str, ...] = ()
    """Jobs of which pausing one is enough, once its allocations have left."""


def changes_that_start(scheduler: Scheduler, request: RequestView, others: Sequence[PoolView]) -> Changes:
    """Returns the changes that start ``request``, which waits there. Leaves the scheduler's state as it is."""
    job = _Job.of(scheduler.pool, request.job_id)
    return Changes(
        slots=_fewer_slots(scheduler, request),
        priority=_better_priority(scheduler, request, job),
        max_slots=_higher_limit(scheduler, request, job),
        pools=tuple(other.name for other in others if _starts_in(other, request)),
        agents=tuple(_agents_to_enable(scheduler, request)),
        slot_ids=tuple(_slots_to_enable(scheduler, request)),
        paused_jobs=tuple(_jobs_to_pause(scheduler, request)),
    )


def starts_now(scheduler: Scheduler, allocation_id: str) -> bool:
    return any(placement.allocation_id == allocation_id for placement in scheduler.steps().placements)


@dataclass(frozen=True)
class _Job:
    waiting: tuple[RequestView, ...]
    running: tuple[RunningView, ...]

    @classmethod
    def of(cls, state: PoolState, job_id: str) -> "_Job":
        waiting = tuple(r for r in state.queue.values() if r.job_id == job_id)
        return cls(waiting, tuple(r for r in state.running.values() if r.job_id == job_id))


def _fewer_slots(scheduler: Scheduler, request: RequestView) -> int | None:
    slotted = [number for number, group in enumerate(request.groups) if group.slots]
    if len(slotted) != 1:
        return None
    number = slotted[0]
    group = request.groups[number]
    free = sum(len(slots) for slots in scheduler.edit().free.values())
    try:
        for slots in range(min(group.slots - 1, free), 0, -1):
            groups = (*request.groups[:number], replace(group, slots=slots), *request.groups[number + 1 :])
            scheduler.edit().replace(replace(request, groups=groups))
            if starts_now(scheduler, request.allocation_id):
                return slots
    finally:
        scheduler.edit().replace(request)
    return None


def _better_priority(scheduler: Scheduler, request: RequestView, job: _Job) -> int | None:
    """Between two priorities that others have, all are equal: only the largest of them is tried."""
    state = scheduler.pool
    taken = {r.priority for r in state.queue.values() if r.job_id != request.job_id}
    taken |= {r.priority for r in state.running.values() if r.job_id != request.job_id}
    candidates = {request.priority - 1, *taken, *(priority - 1 for priority in taken)}
    for priority in sorted((c for c in candidates if MIN_PRIORITY <= c < request.priority), reverse=True):
        with _job_with(scheduler, job, priority):
            if starts_now(scheduler, request.allocation_id):
                return priority
    return None


@contextmanager
def _job_with(scheduler: Scheduler, job: _Job, priority: int) -> Iterator[None]:
    for waiting in job.waiting:
        scheduler.edit().replace(replace(waiting, priority=priority))
    for running in job.running:
        scheduler.edit().replace_running(replace(running, priority=priority))
    yield
    for waiting in job.waiting:
        scheduler.edit().replace(waiting)
    for running in job.running:
        scheduler.edit().replace_running(running)


def _higher_limit(scheduler: Scheduler, request: RequestView, job: _Job) -> int | None:
    """Tries one limit after the other, because with more slots a better request of the job may take what is free."""
    if request.max_slots is None:
        return None
    state = scheduler.pool
    held = state.held.of_job.get(request.job_id, 0)
    in_pool = sum(agent.total for agent in state.agents.values())
    most = held + min(in_pool, sum(waiting.slots for waiting in job.waiting))
    try:
        for max_slots in range(max(request.max_slots + 1, held + request.slots), most + 1):
            scheduler.edit().limit(request.job_id, max_slots)
            if starts_now(scheduler, request.allocation_id):
                return max_slots
    finally:
        scheduler.edit().limit(request.job_id, None)
    return None


def _starts_in(other: PoolView, request: RequestView) -> bool:
    scheduler = Scheduler.of(other)
    scheduler.edit().add(request)
    return starts_now(scheduler, request.allocation_id)


def _agents_to_enable(scheduler: Scheduler, request: RequestView) -> Iterator[str]:
    for agent_id in sorted(scheduler.pool.agents):
        agent = scheduler.edit().agent(agent_id)
        if agent.condition in ("disabled", "draining"):
            enabled = replace(agent, placeable=True, condition="enabled")
            if _starts_with(scheduler, request, agent, enabled):
                yield agent_id


def _slots_to_enable(scheduler: Scheduler, request: RequestView) -> Iterator[tuple[str, int]]:
    held = {(part.agent_id, slot) for r in scheduler.pool.running.values() for part in r.parts for slot in part.slots}
    for agent_id in sorted(scheduler.pool.agents):
        agent = scheduler.edit().agent(agent_id)
        for slot in agent.disabled:
            free = agent.free if (agent_id, slot) in held else (*agent.free, slot)
            enabled = replace(agent, disabled=tuple(s for s in agent.disabled if s != slot), free=free)
            if _starts_with(scheduler, request, agent, enabled):
                yield (agent_id, slot)


def _starts_with(scheduler: Scheduler, request: RequestView, agent: AgentView, changed: AgentView) -> bool:
    scheduler.edit().set_agent(changed)
    try:
        return starts_now(scheduler, request.allocation_id)
    finally:
        scheduler.edit().set_agent(agent)


def _jobs_to_pause(scheduler: Scheduler, request: RequestView) -> Iterator[str]:
    """A job can only be in the way if it runs, starts in this decision, or waits as the first of its shape."""
    state = scheduler.pool
    waiting: dict[str, list[RequestView]] = {}
    for each in state.queue.values():
        waiting.setdefault(each.job_id, []).append(each)
    running: dict[str, list[RunningView]] = {}
    for allocation in state.running.values():
        running.setdefault(allocation.job_id, []).append(allocation)
    summary = scheduler.summary()
    concerned = {state.queue[name].job_id for name in [*summary.placed, *summary.reserved]}
    concerned.update(stuck.request.job_id for stuck in summary.stuck)
    concerned.update(running)
    if state.scheduler.kind == "fair_share":
        concerned.update(waiting)
    concerned.discard(request.job_id)
    for job_id in sorted(concerned):
        if _starts_without(scheduler, request, waiting.get(job_id, ()), running.get(job_id, ())):
            yield job_id


def _starts_without(
    scheduler: Scheduler, request: RequestView, waiting: Collection[RequestView], running: Collection[RunningView]
) -> bool:
    undo: list[Callable[[], None]] = []
    for each in waiting:
        scheduler.edit().remove(each.allocation_id)
        undo.append(lambda each=each: scheduler.edit().add(each))  # type: ignore[misc]
    for allocation in running:
        scheduler.edit().end(allocation.allocation_id)
        undo.append(lambda allocation=allocation: scheduler.edit().hold(allocation))  # type: ignore[misc]
    found = starts_now(scheduler, request.allocation_id)
    for step in undo:
        step()
    return found
