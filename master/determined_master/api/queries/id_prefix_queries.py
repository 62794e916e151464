"""SQL that finds ids by their beginnings."""

from typing import Literal

from sqlalchemy import select

from determined_master.db.models import CheckpointRow, JobRow, TaskRow
from determined_master.db.session import ReadSession

Kind = Literal["checkpoints", "jobs", "tasks"]

_COLUMNS = {"checkpoints": CheckpointRow.uuid, "jobs": JobRow.id, "tasks": TaskRow.id}


async def ids_with_prefix(session: ReadSession, kind: Kind, prefix: str, most: int) -> list[str]:
    """Returns up to ``most`` ids that begin with a prefix, in alphabetical order."""
    column = _COLUMNS[kind]
    query = select(column).where(column.startswith(prefix, autoescape=True)).order_by(column).limit(most)
    return list(await session.scalars(query))
