"""Passes an HTTP request to a port of a task and its answer back, each piece as fast as the other side takes it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpcore
from starlette.types import Message, Receive, Scope, Send

from determined.errors import DeterminedError, TooManyRequests
from determined_master.proxy import headers
from determined_master.proxy.task_network import MAX_CONNECTIONS
from determined_master.proxy.task_port import TaskPort
from determined_master.streams.task_connection import ConnectionFailed

POOL_SECONDS = 30.0
"""Time for which a request waits until one of its user's connections is free."""


class AnswerCut(DeterminedError):
    """The answer of a task ended before its end, after its beginning was passed on."""


@dataclass(frozen=True)
class Forwarding:
    """How the requests to one port of a task are passed on."""

    service: TaskPort
    pool: httpcore.AsyncConnectionPool
    may_cache: bool
    """False where another task may later answer at the same origin."""
    is_sandboxed: bool = False
    """True where the answer has the origin of the cluster: a browser that shows it gives it no rights there."""

    async def pass_on(self, scope: Scope, receive: Receive, send: Send, target: bytes) -> None:
        """Passes one request on, with ``target`` as path and query.

        Raises ConnectionFailed, TooManyRequests and what :meth:`TaskNetwork.connect` raises, before anything was
        answered, and AnswerCut after that.
        """
        body = _Body(receive)
        answering = asyncio.create_task(self._answer(scope, body, send, target))
        leaving = asyncio.create_task(body.visitor_left())
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if answering.done():
                answering.result()
        finally:
            for task in (answering, leaving):
                task.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)

    async def _answer(self, scope: Scope, body: "_Body", send: Send, target: bytes) -> None:
        client = scope.get("client")
        label = self.service.label
        request = httpcore.Request(
            scope["method"].encode(),
            httpcore.URL(scheme=b"http", host=b"task", port=self.service.port, target=target),
            headers=headers.for_task(
                scope["headers"], label=label, scheme=scope["scheme"], client=client[0] if client else ""
            ),
            content=body if _has_body(scope) else None,
            extensions={"timeout": {"pool": POOL_SECONDS}},
        )
        body.is_read = not _has_body(scope)
        response = await self._first_answer(request)
        try:
            answer = headers.for_browser(response.headers, label, may_cache=self.may_cache)
            if self.is_sandboxed:
                answer.append((b"content-security-policy", b"sandbox"))
            body.is_read = True
            await send({"type": "http.response.start", "status": response.status, "headers": answer})
            async for piece in _pieces(response):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await response.aclose()

    async def _first_answer(self, request: httpcore.Request) -> httpcore.Response:
        try:
            return await self.pool.handle_async_request(request)
        except httpcore.PoolTimeout as problem:
            raise TooManyRequests(
                f"you have {MAX_CONNECTIONS} open requests at this port of the task; close some of its pages"
            ) from problem
        except (httpcore.ProtocolError, httpcore.NetworkError) as problem:
            raise ConnectionFailed(f"{self.service} does not answer as a web server does: {problem}") from problem


async def _pieces(response: httpcore.Response) -> AsyncIterator[bytes]:
    """Yields an answer piece by piece. Raises AnswerCut."""
    try:
        async for piece in response.aiter_stream():
            yield piece
    except (ConnectionFailed, httpcore.ProtocolError, httpcore.NetworkError) as problem:
        raise AnswerCut(str(problem)) from problem


class _Body:
    """The body of a request, and then the watch for the visitor's leaving."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._read = asyncio.Event()
        self._left = asyncio.Event()

    @property
    def is_read(self) -> bool:
        return self._read.is_set()

    @is_read.setter
    def is_read(self, value: bool) -> None:
        if value:
            self._read.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while not self.is_read:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._left.set()
                raise ConnectionFailed("the visitor has left")
            if message.get("body"):
                yield message["body"]
            if not message.get("more_body"):
                self.is_read = True

    async def visitor_left(self) -> None:
        """Returns when the visitor has left. Reads what is left of the body, once nobody else does."""
        reading = asyncio.create_task(self._read.wait())
        leaving = asyncio.create_task(self._left.wait())
        try:
            await asyncio.wait({reading, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            reading.cancel()
            leaving.cancel()
        while not self._left.is_set():
            message: Message = await self._receive()
            if message["type"] == "http.disconnect":
                self._left.set()


def _has_body(scope: Scope) -> bool:
    names = dict(scope["headers"])
    return b"transfer-encoding" in names or names.get(b"content-length", b"0").strip() not in (b"0", b"")
