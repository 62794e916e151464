"""SQL for the tasks that build Python environments, and for the containers that wait for them."""

from typing import Any, NamedTuple

from sqlalchemy import select

from determined.states import AllocationState, TaskKind, TaskState
from determined_master.allocations.repository import LIVE
from determined_master.db.models import AllocationRow, ContainerRow, TaskRow
from determined_master.db.session import ReadSession


class Need(NamedTuple):
    """An agent on which containers wait for an environment, and the allocation of the first of them."""

    agent_id: str
    key: str
    task_id: str
    user_id: int
    owner: str
    pool: str
    priority: int
    spec: dict[str, Any]


class Build(NamedTuple):
    """A task that has not ended. ``is_placed``: its container is on the agent."""

    agent_id: str
    key: str
    task_id: str
    is_placed: bool


async def needed(session: ReadSession) -> dict[tuple[str, str], Need]:
    """Returns by agent and key what containers wait for that are not being killed."""
    query = (
        select(
            ContainerRow.agent_id,
            ContainerRow.needed_environment,
            AllocationRow.task_id,
            AllocationRow.user_id,
            AllocationRow.owner,
            AllocationRow.pool,
            AllocationRow.priority,
            AllocationRow.spec,
        )
        .join(AllocationRow, AllocationRow.id == ContainerRow.allocation_id)
        .where(
            AllocationRow.state.in_(LIVE),
            AllocationRow.kill_requested_at.is_(None),
            ContainerRow.is_live(),
            ContainerRow.needed_environment != "",
        )
        .order_by(AllocationRow.created_at, ContainerRow.rank)
    )
    found: dict[tuple[str, str], Need] = {}
    for row in await session.execute(query):
        need = Need(*row)
        found.setdefault((need.agent_id, need.key), need)
    return found


async def builds(session: ReadSession) -> list[Build]:
    """Returns the builds that have not ended."""
    placed = select(AllocationRow.id).where(
        AllocationRow.task_id == TaskRow.id,
        AllocationRow.state.in_(LIVE),
        AllocationRow.state != AllocationState.PENDING,
    )
    query = select(TaskRow.agent_id, TaskRow.environment_key, TaskRow.id, placed.exists()).where(
        TaskRow.kind == TaskKind.ENVIRONMENT, TaskRow.state.in_([s for s in TaskState if s.is_live])
    )
    rows = await session.execute(query)
    return [Build(agent_id or "", key or "", task_id, placed) for agent_id, key, task_id, placed in rows]
