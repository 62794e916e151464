"""Compresses whole answers. Streams, archives, errors and answers that hold a token are sent as they are."""

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.gzip import GZipResponder
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from determined_master.web.assets import chosen
from determined_master.web.body_limit import SIGN_IN_PATHS

MIN_BYTES = 1000
MAX_BYTES = 16 * 1024 * 1024
"""Larger answers are sent as they are: a compressed copy of each would be held in memory."""
THREAD_BYTES = 256 * 1024
"""From this size on, a thread compresses. Below it the event loop is held up for a millisecond: threads cost more."""
LEVEL = 1
"""Lists become nine times smaller at level 1; level 6 saves a seventh of that and takes twice as long."""
_TYPES = ("application/json", "application/yaml", "application/manifest+json", "image/svg+xml", "text/")
_PACKED = "/model_def"
"""An archive, as base64 in JSON."""


class Compression:
    """ASGI middleware. docs/decisions/0029 says why no secret can be guessed from the length of an answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (
            scope["type"] != "http"
            or scope["path"].startswith((*SIGN_IN_PATHS, "/proxy/"))
            or scope["path"].endswith(_PACKED)
        ):
            await self._app(scope, receive, send)
            return
        accepted = Headers(scope=scope).get("accept-encoding", "")
        await _Responder(self._app, is_accepted=chosen(accepted, ("gzip",)) is not None)(scope, receive, send)


class _Responder(GZipResponder):
    """Starlette's responder, for whole answers alone: it compresses streams too, and holds back the head of a stream
    that has nothing to send yet."""

    def __init__(self, app: ASGIApp, *, is_accepted: bool) -> None:
        super().__init__(app, MIN_BYTES, LEVEL, thread_minimum_size=THREAD_BYTES)
        self._is_accepted = is_accepted
        self._is_plain = False

    async def send_with_compression(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            self._is_plain = not _is_whole(message["status"], headers)
            if not self._is_plain:
                headers.add_vary_header("accept-encoding")
                self._is_plain = not self._is_accepted
            if not self._is_plain and headers.get("etag", "").startswith('"'):
                headers["etag"] = "W/" + headers["etag"]  # the same text, in other bytes
        elif not self._is_plain and not self.started and message.get("more_body"):
            # A file that is sent in pieces.
            self._is_plain = True
            await self.send(self.initial_message)
        await (self.send(message) if self._is_plain else super().send_with_compression(message))


def _is_whole(status: int, headers: Headers) -> bool:
    """Returns True for an answer whose length is known, of a kind and size to compress. Answers that repeat what was
    asked are errors."""
    length = headers.get("content-length", "")
    return (
        status == 200
        and length.isdecimal()
        and MIN_BYTES <= int(length) <= MAX_BYTES
        and "content-encoding" not in headers
        and headers.get("content-type", "").startswith(_TYPES)
    )
