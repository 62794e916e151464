"""SQL for the state of the cluster as figures: counts by state, and which live things belong to each other."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from determined.states import AllocationState, ExperimentState
from determined_master.db.models import (
    AgentRow,
    AgentSlotRow,
    AllocationRow,
    ContainerRow,
    ExperimentRow,
    SlotHoldRow,
    TrialRow,
)
from determined_master.db.session import ReadSession

_ENDED = (ExperimentState.COMPLETED, ExperimentState.CANCELED, ExperimentState.ERROR)


@dataclass(frozen=True)
class LiveContainer:
    """A container of a live allocation, with the GPUs that it holds."""

    container_id: str
    allocation_id: str
    task_id: str
    runtime_id: str
    """Id on its container engine; empty for a process."""
    gpu_uuids: tuple[str, ...]


async def experiments_by_state(session: ReadSession) -> dict[str, int]:
    query = select(ExperimentRow.state, func.count()).group_by(ExperimentRow.state)
    return {state.value: count for state, count in await session.execute(query)}


async def trials_by_state(session: ReadSession) -> dict[str, int]:
    query = select(TrialRow.state, func.count()).group_by(TrialRow.state)
    return {state.value: count for state, count in await session.execute(query)}


async def allocations_by_state(session: ReadSession) -> dict[tuple[str, str], int]:
    """Returns the number of live allocations by pool and state."""
    query = (
        select(AllocationRow.pool, AllocationRow.state, func.count())
        .where(AllocationRow.state != AllocationState.TERMINATED)
        .group_by(AllocationRow.pool, AllocationRow.state)
    )
    return {(pool, state.value): count for pool, state, count in await session.execute(query)}


async def agents_by_state(session: ReadSession) -> dict[str, int]:
    """Returns the number of agents that are ``connected``, and of those that are ``away`` for a short time."""
    query = select(AgentRow.disconnected_at).where(AgentRow.lost.is_(False))
    found = Counter("connected" if since is None else "away" for since in await session.scalars(query))
    return {"connected": found["connected"], "away": found["away"]}


async def slots_by_state(session: ReadSession) -> dict[tuple[str, str, str], int]:
    """Returns the number of slots by pool, type and state: ``held``, ``disabled``, ``unusable``, ``away`` with its
    agent for a short time, ``leaving`` with it, or ``free``."""
    held = {
        (agent, slot)
        for agent, slot in await session.execute(
            select(SlotHoldRow.agent_id, SlotHoldRow.slot_id).where(SlotHoldRow.released_at.is_(None))
        )
    }
    query = (
        select(AgentRow, AgentSlotRow)
        .join(AgentRow, AgentRow.id == AgentSlotRow.agent_id)
        .where(AgentRow.lost.is_(False))
    )
    counts: Counter[tuple[str, str, str]] = Counter()
    for agent, slot in await session.execute(query):
        state = "free"
        if (slot.agent_id, slot.slot_id) in held:
            state = "held"
        elif not (agent.enabled and slot.enabled) or slot.draining:
            state = "disabled"
        elif slot.status != "free":
            state = "unusable"
        elif agent.disconnected_at is not None:
            state = "away"
        elif agent.leaving:
            state = "leaving"
        counts[(agent.pool, slot.type, state)] += 1
    return dict(counts)


async def live_containers(session: ReadSession) -> list[LiveContainer]:
    query = (
        select(ContainerRow, AllocationRow.task_id)
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(AllocationRow.state != AllocationState.TERMINATED)
    )
    rows = (await session.execute(query)).all()
    uuids = {
        (slot.agent_id, slot.slot_id): slot.uuid for slot in await session.scalars(select(AgentSlotRow)) if slot.uuid
    }
    containers = []
    for container, task_id in rows:
        gpus = [uuids.get((container.agent_id, slot)) for slot in container.slot_ids]
        held = tuple(uuid for uuid in gpus if uuid)
        containers.append(LiveContainer(container.id, container.allocation_id, task_id, container.runtime_id, held))
    return containers


async def live_experiments(session: ReadSession) -> Sequence[tuple[int, str, list[str]]]:
    """Returns id, job and labels of the experiments that have not ended."""
    query = select(ExperimentRow.id, ExperimentRow.job_id, ExperimentRow.labels).where(
        ExperimentRow.state.not_in(_ENDED)
    )
    return [(number, job_id, labels) for number, job_id, labels in await session.execute(query)]
