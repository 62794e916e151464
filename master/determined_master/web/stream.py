"""``GET /detent/stream``: what has changed, as server-sent events."""

from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.responses import StreamingResponse

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.dependencies import TheMaster
from determined_master.web.wire import Bye, Changes, Hello

router = APIRouter(prefix="/detent", tags=["page"])


class EventStream(StreamingResponse):
    """Its type, for the OpenAPI page."""

    media_type = "text/event-stream"


@router.get(
    "/stream",
    response_class=EventStream,
    responses={200: {"model": Hello | Changes | Bye, "description": "Events `hello`, `change` and `bye`."}},
)
async def follow_changes(
    _principal: Anyone,
    master: TheMaster,
    last_event_id: Annotated[str, Header()] = "",
    last_event_id_asked: Annotated[str, Query(alias="lastEventId")] = "",
) -> EventStream:
    raise NotImplementedYet
