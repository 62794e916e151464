"""Normalizes requests to ``/api/v1/``: untyped bodies are JSON, query keys become camelCase. Bodies stay unchanged."""

import re
from urllib.parse import parse_qsl, urlencode

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SNAKE = re.compile(r"_([a-z0-9])")


def camel(name: str) -> str:
    return _SNAKE.sub(lambda match: match.group(1).upper(), name)


class RequestNormalizer:
    """ASGI middleware. It waits only for the first bytes of a body, to recognize an empty one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith("/api/v1/"):
            await self._app(scope, receive, send)
            return
        scope = dict(scope)
        path: str = scope["path"]
        if path.endswith("/"):
            scope["path"] = path.rstrip("/")
        query: bytes = scope["query_string"]
        if b"_" in query:
            pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
            scope["query_string"] = urlencode([(camel(k), v) for k, v in pairs]).encode("latin-1")
        if scope["method"] in ("POST", "PUT", "PATCH", "DELETE"):
            headers = [(k, v) for k, v in scope["headers"] if k != b"content-type"]
            scope["headers"] = [*headers, (b"content-type", b"application/json")]
            receive = _never_empty(receive)
        await self._app(scope, receive, send)


def _never_empty(receive: Receive) -> Receive:
    first = True

    async def wrapped() -> Message:
        nonlocal first
        message = await receive()
        if first:
            first = False
            while message["type"] == "http.request" and not message.get("body") and message.get("more_body"):
                message = await receive()
            if message["type"] == "http.request" and not message.get("body"):
                return {"type": "http.request", "body": b"{}", "more_body": False}
        return message

    return wrapped
