"""The outermost middleware, also around the fast path: proxy prefix, CSRF, body limits, no sniffing, no frames."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from determined.errors import ApiError, Forbidden
from determined_master.api.errors import response_of
from determined_master.api.proxy_prefix import cleaned, inside
from determined_master.web.body_limit import counted, too_large
from determined_master.web.csrf import SAFE
from determined_master.web.csrf import refusal as csrf_refusal

_PROTECTION = ((b"x-content-type-options", b"nosniff"), (b"x-frame-options", b"DENY"))


class OuterMiddleware:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, base_path: str) -> None:
        self._app = app
        self._base_path = cleaned(base_path)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        if self._base_path:
            scope = {**scope, "path": inside(scope["path"], self._base_path)}
        if scope["type"] == "websocket":
            await self._app(scope, receive, send)
            return

        async def send_protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_PROTECTION]
            await send(message)

        if scope["method"] in SAFE:
            await self._app(scope, receive, send_protected)
            return
        announced, has_cookie = None, False
        for name, value in scope["headers"]:
            if name == b"content-length":
                announced = value
            elif name == b"cookie":
                has_cookie = True
        why = _why(scope) if has_cookie else None  # most requests of programs carry none
        refusal: ApiError | None = None
        if why is not None:
            refusal = Forbidden(why)
        elif announced is not None:
            refusal = too_large(scope["path"], announced)
        else:
            receive = counted(scope["path"], receive)
        await (self._app if refusal is None else response_of(refusal))(scope, receive, send_protected)


def _why(scope: Scope) -> str | None:
    """Checks CSRF of a request with cookies."""
    headers: list[tuple[bytes, bytes]] = scope["headers"]
    # HTTP/2 allows several cookie headers; all of them are examined.
    said: dict[str, str] = {}
    for raw, value in headers:
        name, text = raw.decode("latin-1"), value.decode("latin-1")
        said[name] = f"{said[name]}; {text}" if name == "cookie" and name in said else text
    return csrf_refusal(scope["method"], said)
