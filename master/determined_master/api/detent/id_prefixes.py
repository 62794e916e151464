"""Finds ids by their beginnings, so that nobody types whole ids into a command."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from determined_master.api.dependencies import Read, User
from determined_master.api.queries import id_prefix_queries
from determined_master.api.queries.id_prefix_queries import Kind
from determined_master.api.schemas.base import Wire

router = APIRouter(prefix="/detent", tags=["cluster"])

MAX_IDS = 10


class IdsAnswer(Wire):
    ids: list[str]
    """The first ones in alphabetical order; the id itself alone if it is a whole one."""


@router.get("/ids/{kind}")
async def ids_with_prefix(
    kind: Annotated[Kind, Path()],
    prefix: Annotated[str, Query(min_length=1, max_length=255)],
    _user: User,
    session: Read,
) -> IdsAnswer:
    """Returns up to ten ids that begin with a prefix."""
    found = await id_prefix_queries.ids_with_prefix(session, kind, prefix, MAX_IDS)
    return IdsAnswer(ids=[prefix] if prefix in found else found)
