"""What the headers of a proxy say of a request: its scheme, and the address of its sender.

Everybody can send such headers, so an address is believed only of the proxies that the settings name. The scheme is
believed of a proxy on this machine too: it decides only whether a cookie is marked as secure.
"""

from collections.abc import Sequence

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

LOOPBACK = ("127.0.0.1", "::1")
_SCHEMES = {"http": {b"http": "http", b"https": "https"}, "websocket": {b"http": "ws", b"https": "wss"}}


class ForwardedHeaders:
    """Middleware. ``trusted``: addresses and networks of proxies."""

    def __init__(self, app: ASGIApp, trusted: Sequence[str] = ()) -> None:
        self._app = app
        self._trusting = ProxyHeadersMiddleware(app, list(trusted)) if trusted else None  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._trusting is not None:
            await self._trusting(scope, receive, send)  # type: ignore[arg-type]
            return
        if scope["type"] in _SCHEMES and scope.get("client") and scope["client"][0] in LOOPBACK:
            said = dict(scope["headers"]).get(b"x-forwarded-proto", b"").strip()
            if said in _SCHEMES[scope["type"]]:
                scope["scheme"] = _SCHEMES[scope["type"]][said]
        await self._app(scope, receive, send)
