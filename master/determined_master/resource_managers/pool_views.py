"""Makes the scheduler's views of agents, requests and running allocations from rows; the capacity of a pool."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from determined.states import InstanceState, TaskKind
from determined_master.agents import repository as agent_rows
from determined_master.allocations import agent_containers_repository, queue_repository, task_groups
from determined_master.allocations import repository as allocation_rows
from determined_master.allocations.queue_repository import AttemptProgress, QueuedAllocation
from determined_master.db.models.base import EARLIEST
from determined_master.db.session import ReadSession
from determined_master.providers import repository as instance_rows
from determined_master.resource_managers import pool_queries
from determined_master.resource_managers.manager import Capacity
from determined_master.resource_managers.pool_queries import PresentAgent, PresentSlot
from determined_master.scheduling.plan import Part
from determined_master.scheduling.view import (
    AgentView,
    Condition,
    Constraints,
    Launches,
    PoolView,
    ProviderShape,
    RequestView,
    RunningView,
    SchedulerView,
    TaskGroup,
)
from determined_master.settings.pool_settings import PoolSettings, ProviderSettings, SchedulerSettings


async def idle(session: ReadSession, pool: PoolSettings, groups: Sequence[TaskGroup]) -> PoolView:
    """Returns the view of a pool in which nothing runs and only these groups wait."""
    request = RequestView(
        allocation_id="new",
        job_id="new",
        groups=tuple(groups),
        priority=1,
        weight=1.0,
        position=EARLIEST,
        submitted_at=EARLIEST,
        user_id=0,
        preemptible=True,
    )
    scheduler = await scheduler_view(session, pool)
    found = await agents(session, await pool_queries.present_in(session, pool.pool_name), {pool.pool_name: pool})
    return PoolView(pool.pool_name, tuple(view for _, view in found), (request,), (), scheduler)


def scheduler_of(pool: PoolSettings) -> SchedulerView:
    """Returns the view of a pool's scheduler, without its provider."""
    scheduler = pool.scheduler or SchedulerSettings()
    return SchedulerView(
        kind=scheduler.type,
        preemption=bool(scheduler.preemption),
        fitting=scheduler.fitting_policy,
        max_slots_per_user=pool.max_slots_per_user,
    )


async def scheduler_view(session: ReadSession, pool: PoolSettings) -> SchedulerView:
    if pool.provider is None:
        return scheduler_of(pool)
    return replace(scheduler_of(pool), provider_can_add=await _provided(session, pool.pool_name, pool.provider))


async def _provided(session: ReadSession, pool: str, provider: ProviderSettings) -> ProviderShape:
    """Agents that run are among those of the view; only the others could be added."""
    rows = await instance_rows.live(session, pool)
    starting = [row for row in rows if row.state is InstanceState.STARTING]
    running = sum(row.state is InstanceState.RUNNING for row in rows)
    failed = await instance_rows.failures(session, pool)
    launches = Launches(
        max_agents=provider.max_agents,
        existing=len(rows) * provider.nodes,
        starting=len(starting) * provider.nodes,
        starting_since=starting[0].requested_at if starting else None,
        waiting=starting[0].waiting if starting else "",
        start_estimate=starting[0].start_estimate if starting else None,
        failures=failed.count,
        failure=failed.last,
        stuck=next((row.end_failure for row in rows if row.end_failure), ""),
    )
    can_start = max(0, provider.max_agents - running * provider.nodes)
    return ProviderShape(provider.slots_per_agent, can_start, launches)


async def capacity(session: ReadSession, pool: str) -> Capacity:
    """Returns what a pool of agents has, and what is used of it."""
    present = {a.id for a in await agent_rows.present(session) if a.pool == pool}
    slots = [s for s in await agent_rows.slots(session) if s.agent_id in present]
    held = await allocation_rows.held_slots(session)
    without = await agent_containers_repository.agents_of_zero_slot_containers(session)
    queued, scheduled = await queue_repository.counts(session, pool)
    return Capacity(
        agents=len(present),
        slots=len(slots),
        used=sum(agent_id in present for agent_id, _ in held),
        slot_type=slots[0].type if slots else "cpu",
        slots_per_agent=max(Counter(s.agent_id for s in slots).values(), default=0),
        zero_slot_containers=sum(each in present for each in without),
        queued=queued,
        scheduled=scheduled,
    )


async def agents(
    session: ReadSession, ids: Sequence[str], pools: Mapping[str, PoolSettings]
) -> list[tuple[str, AgentView]]:
    """Returns those of the agents that are present, each with its pool."""
    slots: dict[str, list[PresentSlot]] = defaultdict(list)
    for slot in await pool_queries.slots(session, ids):
        slots[slot.agent_id].append(slot)
    held = set(await pool_queries.held_slots(session, ids))
    without_slots = Counter(await agent_containers_repository.zero_slot_containers_of(session, ids))
    views = []
    for row in await pool_queries.agents(session, ids):
        limit = (pools[row.pool].max_aux_containers_per_agent if row.pool in pools else 0) or 0
        views.append((row.pool, _agent(row, slots[row.id], held, max(0, limit - without_slots[row.id]))))
    return views


def _agent(row: PresentAgent, slots: Sequence[PresentSlot], held: set[tuple[str, int]], room: int) -> AgentView:
    unheld = [s for s in slots if (s.agent_id, s.slot_id) not in held]
    is_usable = ("free", "idle")
    return AgentView(
        id=row.id,
        free=tuple(s.slot_id for s in unheld if s.enabled and s.status in is_usable),
        total=len(slots),
        placeable=row.enabled and not row.leaving and row.disconnected_at is None,
        zero_slot_room=room,
        unusable=tuple(
            f"slot {s.slot_id} of {s.agent_id}: {s.status_reason}"
            for s in unheld
            if s.enabled and s.status not in is_usable
        ),
        is_connected=row.disconnected_at is None,
        disabled=tuple(s.slot_id for s in slots if not s.enabled),
        condition=_condition(row),
        leaves=f"at {row.leaves_at:%H:%M} UTC: {row.leaves_why}" if row.leaving and row.leaves_at is not None else "",
    )


async def with_times(session: ReadSession, pool: PoolView, now: datetime, page: int) -> PoolView:
    """Returns the view with how long its running trials will still run, and how long they will take to save."""
    progress = await queue_repository.progress(session, pool.name, page)
    experiments = {each.experiment_id for each in progress.values() if each.experiment_id is not None}
    saving = await queue_repository.seconds_to_save(session, experiments)
    running = []
    for number, each in enumerate(pool.running):
        found = progress.get(each.allocation_id)
        if found is not None:
            left, to_save = seconds_left(found, now), saving.get(found.experiment_id or 0)
            each = replace(each, seconds_left=left, seconds_to_save=to_save)
        running.append(each)
        if number % page == 0:
            await asyncio.sleep(0)
    return replace(pool, running=tuple(running))


def seconds_left(row: AttemptProgress, now: datetime) -> float | None:
    """Returns how long a trial will still run if it goes on as fast as in this attempt; None if nothing is known."""
    progress, steps, start = row.trial_progress, row.trial_steps, row.start_steps
    if not progress or not steps or row.placed_at is None or steps <= (start or 0):
        return None
    elapsed = (now - row.placed_at).total_seconds()
    steps_left = steps / min(progress, 1.0) - steps
    return max(0.0, elapsed * steps_left / (steps - (start or 0)))


def _condition(row: PresentAgent) -> Condition:
    if row.disconnected_at is not None:
        return "disconnected"
    if row.leaving:
        return "leaving"
    return "enabled" if row.enabled else "draining" if row.draining else "disabled"


def _groups_of(row: QueuedAllocation) -> tuple[TaskGroup, ...]:
    if row.groups:
        return tuple(task_groups.from_json(each) for each in row.groups)
    constraints = Constraints(single_agent=row.single_agent, agent_id=row.agent_id)
    return (TaskGroup(row.kind.value.lower(), slots=row.slots, constraints=constraints),)


def _label(row: QueuedAllocation) -> str:
    if row.trial_id is None:
        return f"task {row.task_id}"
    return f"trial {row.trial_id} of experiment {row.experiment_id}"


def request(row: QueuedAllocation) -> RequestView:
    """Returns the view of an allocation that waits."""
    return RequestView(
        allocation_id=row.id,
        job_id=row.job_id,
        groups=_groups_of(row),
        priority=row.priority,
        weight=row.weight,
        position=row.position,
        submitted_at=row.created_at,
        user_id=row.user_id,
        preemptible=row.kind is TaskKind.TRIAL,
        max_slots=row.max_slots,
        label=_label(row),
    )


def running(row: QueuedAllocation, parts: tuple[Part, ...]) -> RunningView:
    """Returns the view of an allocation that has been placed."""
    return RunningView(
        allocation_id=row.id,
        job_id=row.job_id,
        parts=parts,
        priority=row.priority,
        weight=row.weight,
        position=row.position,
        user_id=row.user_id,
        preemptible=row.kind is TaskKind.TRIAL,
        leaving=row.preempt_requested_at is not None or row.kill_requested_at is not None,
        max_slots=row.max_slots,
        leaving_for=row.preempted_for,
        label=_label(row),
    )
