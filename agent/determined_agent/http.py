"""A small HTTP/1.1 client on asyncio with one persistent connection, for contexts and output."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

_HEAD_LIMIT = 1 << 16
_FAILURES = (OSError, EOFError, ValueError, asyncio.LimitOverrunError)


class HttpError(Exception):
    """No answer, or one that cannot be read."""


@dataclass(frozen=True)
class Answer:
    status: int
    body: bytes


class HttpClient:
    """One connection to the master, used by one caller at a time, opened anew where it has gone."""

    def __init__(self, base: str, token: str, *, timeout: float = 30.0) -> None:
        url = urlsplit(base)
        self._host = url.hostname or "127.0.0.1"
        self._port = url.port or (443 if url.scheme == "https" else 80)
        self._tls = ssl.create_default_context() if url.scheme == "https" else None
        self._prefix = url.path.rstrip("/")
        self._token = token
        self._timeout = timeout
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(
        self, method: str, path: str, body: bytes = b"", *, sink: Callable[[bytes], object] | None = None
    ) -> Answer:
        """Sends one request. With ``sink`` the body of a 200 goes there piece by piece. Raises HttpError."""
        # A kept connection may have been closed by the master in between; that is no failure yet.
        is_retried = self._streams is not None and sink is None
        while True:
            try:
                return await self._exchange(method, path, body, sink)
            except _FAILURES as error:
                self.close()
                if not is_retried:
                    raise HttpError(f"{method} {path}: {error or type(error).__name__}") from error
                is_retried = False
            except BaseException:
                self.close()  # half an exchange is no place to go on from
                raise

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None

    async def _exchange(self, method: str, path: str, body: bytes, sink: Callable[[bytes], object] | None) -> Answer:
        async with asyncio.timeout(self._timeout):
            if self._streams is None:
                self._streams = await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=_HEAD_LIMIT)
            reader, writer = self._streams
            head = (
                f"{method} {self._prefix}{path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
                f"Authorization: Bearer {self._token}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            writer.write(head.encode() + body)
            await writer.drain()
            status, headers = _head(await reader.readuntil(b"\r\n\r\n"))
        pieces: list[bytes] = []
        await self._body(reader, headers, sink if sink is not None and status == 200 else pieces.append)
        if headers.get("connection", "").lower() == "close" or not _has_length(headers):
            self.close()
        return Answer(status, b"".join(pieces))

    async def _body(
        self, reader: asyncio.StreamReader, headers: dict[str, str], sink: Callable[[bytes], object]
    ) -> None:
        async def pass_on(length: int) -> None:
            while length > 0:
                async with asyncio.timeout(self._timeout):
                    piece = await reader.read(min(length, 1 << 18))
                if not piece:
                    raise EOFError("the answer broke off")
                sink(piece)
                length -= len(piece)

        if headers.get("transfer-encoding", "").lower() == "chunked":
            while (size := int((await reader.readline()).split(b";")[0], 16)) > 0:
                await pass_on(size)
                await reader.readline()
            await reader.readline()
        elif "content-length" in headers:
            await pass_on(int(headers["content-length"]))
        else:
            while piece := await reader.read(1 << 18):
                sink(piece)


def _has_length(headers: dict[str, str]) -> bool:
    return "content-length" in headers or headers.get("transfer-encoding", "").lower() == "chunked"


def _head(data: bytes) -> tuple[int, dict[str, str]]:
    first, *rest = data.decode("latin-1").split("\r\n")
    headers = {}
    for line in rest:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    version, _, status = first.partition(" ")
    if not version.startswith("HTTP/1."):
        raise ValueError("the answer is not HTTP/1")
    return int(status[:3]), headers
