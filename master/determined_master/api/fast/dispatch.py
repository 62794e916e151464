"""Fast path: dispatches hot routes by one look-up of the path, before FastAPI, which costs more than the work."""

import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Receive, Scope, Send

Handler = Callable[[Request], Awaitable[ASGIApp]]


class HotRoute(NamedTuple):
    method: str
    path: str
    handler: Handler


class Json:
    """A successful answer. Starlette's response costs as much as all else that a small report needs here."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._body})


async def body_of(request: Request) -> bytes:
    """Returns the body. Raises ClientDisconnect. To be called once: nothing keeps it."""
    parts: list[bytes] = []
    while True:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        if not message.get("more_body"):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)


class FastPath:
    """ASGI middleware. Handlers convert all errors to responses."""

    def __init__(self, app: ASGIApp, routes: Sequence[HotRoute], owner: object) -> None:
        """``routes``: methods and path patterns with ``{name}`` or ``{name:int}`` segments. ``owner``: value of
        ``request.app``."""
        self._app = app
        self._owner = owner
        self._routes: dict[str, list[tuple[re.Pattern[str], Handler]]] = defaultdict(list)
        for route in routes:
            self._routes[route.method].append((_compiled(route.path), route.handler))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] in self._routes:
            path: str = scope["path"]
            for pattern, handler in self._routes[scope["method"]]:
                found = pattern.fullmatch(path)
                if found:
                    scope["path_params"] = found.groupdict()
                    scope["app"] = self._owner
                    response = await handler(Request(scope, receive, send))
                    await response(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def _compiled(path: str) -> re.Pattern[str]:
    path = re.sub(r"\{(\w+):int\}", r"(?P<\1>[0-9]+)", path)
    return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path) + r"/?")
