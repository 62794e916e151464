"""Admits followers of streams one by one."""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send


class StreamAdmission:
    """ASGI middleware. Followers who come at once begin one after the other, with other requests in between.

    Each needs about a millisecond of the event loop until its stream has begun: two hundred who are all ready would
    hold up every other request for as long as all of them need.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and b"follow=" in scope["query_string"]:
            async with self._turn:
                await asyncio.sleep(0)
        await self._app(scope, receive, send)
