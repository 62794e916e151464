"""``GET /detent/stream``: changes as server-sent events."""

import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import StreamingResponse

from determined import __version__
from determined_master import notifications
from determined_master.api.change_feed import ChangeFeed, encoded
from determined_master.api.dependencies import Anyone, AuthenticatorDep, ClockDep, NotificationsDep
from determined_master.api.schemas.page import Bye, Changes, Hello
from determined_master.auth.authentication import Authenticator, lasts
from determined_master.clock import Clock
from determined_master.notifications import Notifications

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
    authenticator: AuthenticatorDep,
    clock: ClockDep,
    publisher: NotificationsDep,
    last_event_id: Annotated[str, Header()] = "",
    last_event_id_asked: Annotated[str, Query(alias="lastEventId")] = "",
) -> EventStream:
    """Streams changes and resumes after the given event; browsers send its id when they reconnect."""
    after = last_event_id or last_event_id_asked
    return EventStream(_events(request, authenticator, clock, publisher, after), headers=_HEADERS)


async def _events(
    request: Request, authenticator: Authenticator, clock: Clock, publisher: Notifications, after: str
) -> AsyncIterator[bytes]:
    feed: ChangeFeed = request.app.state.feed
    async with publisher.subscribe(notifications.FEED, notifications.SESSIONS) as listener:
        logins, looked_at = -1, 0.0
        at, resumed = feed.place(after)
        yield _hello(request, clock, feed, at, resumed=resumed)
        while True:
            # Checked when a sign-in has ended, and periodically, since one may also have expired.
            if logins != feed.logins or time.monotonic() - looked_at >= QUIET_SECONDS:
                logins, looked_at = feed.logins, time.monotonic()
                if not await lasts(_is_signed_in(request, authenticator)):
                    yield _bye(feed, Bye(reason="signed-out"))
                    return
            batches = feed.ring.since(at)
            at = feed.ring.newest
            if batches is None:
                yield _hello(request, clock, feed, at, resumed=False)
            elif batches:
                yield b"".join(batch.event for batch in batches)
            if publisher.closing:
                yield _bye(feed, Bye(reason="shutdown"))
                return
            if not await listener.wait(QUIET_SECONDS):
                yield b": still here\n\n"


def _hello(request: Request, clock: Clock, feed: ChangeFeed, at: int, *, resumed: bool) -> bytes:
    page = request.app.state.page_files.page
    hello = Hello(build=page.build if page else "", version=__version__, now=clock.now(), resumed=resumed)
    return b"retry: 1000\n" + encoded(feed.name_of(at), "hello", hello.model_dump_json())


def _bye(feed: ChangeFeed, bye: Bye) -> bytes:
    return encoded(feed.name_of(feed.ring.newest), "bye", bye.model_dump_json())


async def _is_signed_in(request: Request, authenticator: Authenticator) -> bool:
    await authenticator.principal(request.headers, request.cookies)
    return True
