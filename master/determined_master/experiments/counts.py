"""How many experiments there are."""

from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncSession

from determined.states import ExperimentState
from determined_master.db.models import ExperimentRow


async def of_project(session: AsyncSession, project_id: int) -> tuple[int, int]:
    """All of them, and those that are ACTIVE."""
    query = select(ExperimentRow.state, func.count()).where(
        ExperimentRow.project_id == project_id, ExperimentRow.state != ExperimentState.DELETED
    )
    counted = {row[0]: row[1] for row in (await session.execute(query.group_by(ExperimentRow.state))).all()}
    return sum(counted.values()), counted.get(ExperimentState.ACTIVE, 0)
