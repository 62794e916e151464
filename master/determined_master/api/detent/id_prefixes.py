"""Finds ids by their beginnings, so that nobody types whole ids into a command."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from sqlalchemy import select

from determined_master.api.dependencies import Read, User
from determined_master.api.schemas.base import Wire
from determined_master.db.models import CheckpointRow, JobRow, TaskRow

router = APIRouter(prefix="/detent", tags=["cluster"])

MAX_IDS = 10
COLUMNS = {"checkpoints": CheckpointRow.uuid, "jobs": JobRow.id, "tasks": TaskRow.id}


class IdsAnswer(Wire):
    ids: list[str]
    """The first ones in alphabetical order; the id itself alone if it is a whole one."""


@router.get("/ids/{kind}")
async def ids_with_prefix(
    kind: Annotated[Literal["checkpoints", "jobs", "tasks"], Path()],
    prefix: Annotated[str, Query(min_length=1, max_length=255)],
    _user: User,
    session: Read,
) -> IdsAnswer:
    """Returns up to ten ids that begin with a prefix."""
    column = COLUMNS[kind]
    query = select(column).where(column.startswith(prefix, autoescape=True)).order_by(column).limit(MAX_IDS)
    found = list(await session.scalars(query))
    return IdsAnswer(ids=[prefix] if prefix in found else found)
