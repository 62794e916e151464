"""``GET /detent/stream``: changes as server-sent events."""

import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from determined import __version__
from determined.errors import ApiError
from determined_master import notifications
from determined_master.api.change_feed import ChangeFeed, encoded
from determined_master.api.dependencies import Anyone, ServicesDep
from determined_master.api.schemas.page import Bye, Changes, Hello
from determined_master.services import Services

router = APIRouter(prefix="/detent", tags=["page"])

QUIET_SECONDS = 15.0
_HEADERS = {"cache-control": "no-store", "x-accel-buffering": "no"}


class EventStream(StreamingResponse):
    """Response class with the media type for the OpenAPI document."""

    media_type = "text/event-stream"


@router.get(
    "/stream",
    response_class=EventStream,
    responses={200: {"model": Hello | Changes | Bye, "description": "Events `hello`, `change` and `bye`."}},
)
async def follow_changes(
    request: Request,
    _principal: Anyone,
    services: ServicesDep,
    last_event_id: Annotated[str, Header()] = "",
    last_event_id_asked: Annotated[str, Query(alias="lastEventId")] = "",
) -> EventStream:
    """Streams changes and resumes after the given event; browsers send its id when they reconnect."""
    return EventStream(_events(request, services, last_event_id or last_event_id_asked), headers=_HEADERS)


async def _events(request: Request, services: Services, after: str) -> AsyncIterator[bytes]:
    feed: ChangeFeed = request.app.state.feed
    async with services.notifications.subscribe(notifications.FEED, notifications.SESSIONS) as listener:
        logins, looked_at = -1, 0.0
        at, resumed = feed.place(after)
        yield _hello(request, services, feed, at, resumed=resumed)
        while True:
            # Checked when a sign-in has ended, and periodically, since one may also have expired.
            if logins != feed.logins or time.monotonic() - looked_at >= QUIET_SECONDS:
                logins, looked_at = feed.logins, time.monotonic()
                if not await _is_signed_in(request, services):
                    yield _bye(feed, Bye(reason="signed-out"))
                    return
            batches = feed.ring.since(at)
            at = feed.ring.newest
            if batches is None:
                yield _hello(request, services, feed, at, resumed=False)
            elif batches:
                yield b"".join(batch.event for batch in batches)
            if services.notifications.closing:
                yield _bye(feed, Bye(reason="shutdown"))
                return
            if not await listener.wait(QUIET_SECONDS):
                yield b": still here\n\n"


def _hello(request: Request, services: Services, feed: ChangeFeed, at: int, *, resumed: bool) -> bytes:
    page = request.app.state.page_files.page
    hello = Hello(build=page.build if page else "", version=__version__, now=services.clock.now(), resumed=resumed)
    return b"retry: 1000\n" + encoded(feed.name_of(at), "hello", hello.model_dump_json())


def _bye(feed: ChangeFeed, bye: Bye) -> bytes:
    return encoded(feed.name_of(feed.ring.newest), "bye", bye.model_dump_json())


async def _is_signed_in(request: Request, services: Services) -> bool:
    try:
        await services.authenticator.principal(request.headers, request.cookies)
    except ApiError:
        return False
    return True
