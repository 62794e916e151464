"""SQL that finds ids by their beginnings."""

from typing import Literal

from sqlalchemy import false, select

from determined.states import ExperimentState
from determined_master.db.models import CheckpointRow, ExperimentRow, JobRow, TaskRow
from determined_master.db.session import ReadSession

Kind = Literal["checkpoints", "jobs", "tasks"]

_COLUMNS = {"checkpoints": CheckpointRow.uuid, "jobs": JobRow.id, "tasks": TaskRow.id}
_OF_DELETED = {
    "checkpoints": false(),  # they are deleted with it
    "jobs": ExperimentRow.job_id == JobRow.id,
    "tasks": ExperimentRow.id == TaskRow.experiment_id,
}


async def ids_with_prefix(session: ReadSession, kind: Kind, prefix: str, most: int) -> list[str]:
    """Returns up to ``most`` ids that begin with a prefix, in alphabetical order; none of a deleted experiment."""
    column = _COLUMNS[kind]
    is_deleted = (
        select(ExperimentRow.id)
        .where(_OF_DELETED[kind], ExperimentRow.state == ExperimentState.DELETED)
        .correlate(column.class_)
        .exists()
    )
    query = select(column).where(column.startswith(prefix, autoescape=True), ~is_deleted)
    return list(await session.scalars(query.order_by(column).limit(most)))
