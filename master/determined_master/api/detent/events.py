"""Recorded events, newest first, each as a sentence."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined_master.api.dependencies import Anyone, Read
from determined_master.api.schemas.base import BoundedInt, Json, Time, Wire
from determined_master.events import search_queries
from determined_master.events.repository import Selection
from determined_master.events.sentences import sentence

router = APIRouter(prefix="/detent", tags=["detent"])
MAX_SEARCH_LENGTH = 1000


class ListedEvent(Wire):
    id: int
    time: Time
    actor: str
    kind: str
    target_type: str
    target_id: str
    payload: Json
    text: str


class EventList(Wire):
    """``next``: value of ``before`` for the next page; None on the last page. With a search, a page may be short."""

    events: list[ListedEvent]
    next: int | None


@router.get("/events")
async def list_events(
    _principal: Anyone,
    session: Read,
    before: BoundedInt | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    kind: str = "",
    actor: str = "",
    target_type: Annotated[str, Query(alias="targetType")] = "",
    target_id: Annotated[str, Query(alias="targetId")] = "",
    search: Annotated[str, Query(max_length=MAX_SEARCH_LENGTH)] = "",
) -> EventList:
    wanted = Selection(kind, actor, target_type, target_id)
    page = await search_queries.search(session, wanted, search, before=before, limit=limit)
    shown = [
        ListedEvent(
            id=row.id,
            time=row.time,
            actor=row.actor,
            kind=row.kind,
            target_type=row.target_type,
            target_id=row.target_id,
            payload=row.payload,
            text=sentence(row.kind, row.actor, row.target_type, row.target_id, row.payload),
        )
        for row in page.rows
    ]
    return EventList(events=shown, next=page.next)
