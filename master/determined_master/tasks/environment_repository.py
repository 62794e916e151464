"""SQL for the tasks that build Python environments."""

from sqlalchemy import select
from sqlalchemy.orm import undefer

from determined.states import TaskKind, TaskState
from determined_master.db.models import AllocationRow, TaskRow
from determined_master.db.session import ReadSession


async def attempt(session: ReadSession, allocation_id: str) -> AllocationRow:
    """Returns an attempt with its spec."""
    query = select(AllocationRow).where(AllocationRow.id == allocation_id).options(undefer(AllocationRow.spec))
    return (await session.scalars(query.execution_options(populate_existing=True))).one()


async def builds(session: ReadSession) -> dict[tuple[str, str], str]:
    """Returns the builds that have not ended, by agent and key of the environment. One that is stopping is none."""
    query = (
        select(TaskRow.agent_id, TaskRow.environment_key, TaskRow.id)
        .where(TaskRow.kind == TaskKind.ENVIRONMENT, TaskRow.state == TaskState.ACTIVE)
        .order_by(TaskRow.created_at.desc())
    )
    return {(agent_id or "", key or ""): task_id for agent_id, key, task_id in await session.execute(query)}
