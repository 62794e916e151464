"""The head of a response and the start of its body are written together, and a head without a body is not delayed."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from tests.support.waiting import eventually

from determined_master.server.http_server import config_of
from determined_master.web.joined_head import MAX_JOINED_BYTES, JoinedHead


class Transport:
    """Records the written data."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def close(self) -> None:
        self.written.append(b"closed")


@pytest.fixture
def transport() -> Transport:
    return Transport()


def joined_head(transport: Transport) -> JoinedHead:
    return JoinedHead(cast(Any, transport), asyncio.get_running_loop())


async def test_a_head_is_written_with_the_start_of_its_body(transport: Transport) -> None:
    head = joined_head(transport)
    for part in (b"head ", b"body ", b"more"):
        head.write(part)
    await asyncio.sleep(0)
    assert transport.written == [b"head body ", b"more"]


async def test_a_head_without_a_body_is_written_in_the_next_loop_iteration(transport: Transport) -> None:
    head = joined_head(transport)
    head.write(b"head")
    assert transport.written == []
    await asyncio.sleep(0)
    head.write(b"body")
    assert transport.written == [b"head", b"body"]


async def test_a_long_body_is_not_copied(transport: Transport) -> None:
    head, body = joined_head(transport), b"x" * (MAX_JOINED_BYTES + 1)
    head.write(b"head")
    head.write(body)
    assert transport.written == [b"head", body]
    assert transport.written[1] is body


async def test_a_delayed_head_is_written_before_the_connection_closes(transport: Transport) -> None:
    head = joined_head(transport)
    head.write(b"head")
    head.close()
    await asyncio.sleep(0)
    assert transport.written == [b"head", b"closed"]


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers "body". /slow answers after the body of the request has arrived."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    if scope["path"] == "/slow":
        await receive()
    await send({"type": "http.response.body", "body": b"body"})


@asynccontextmanager
async def connection() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Yields a connection to a server with the master's configuration."""
    config = config_of(application)
    config.lifespan = "off"
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await eventually(lambda: server.started)
        reader, writer = await asyncio.open_connection(*listener.getsockname())
        try:
            yield reader, writer
        finally:
            writer.close()
            server.should_exit = server.force_exit = True
            await serving


async def head_of(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(20):
        return (await reader.readuntil(b"\r\n\r\n")).splitlines()[0]


async def test_the_head_of_a_slow_answer_does_not_wait_for_its_body() -> None:
    async with connection() as (reader, writer):
        writer.write(b"POST /slow HTTP/1.1\r\nhost: here\r\ncontent-length: 1\r\n\r\n")
        assert await head_of(reader) == b"HTTP/1.1 200 OK"
        writer.write(b"x")
        assert await reader.readexactly(4) == b"body"


async def test_one_connection_gets_each_answer_whole_also_one_without_a_body() -> None:
    async with connection() as (reader, writer):
        for method in (b"GET", b"HEAD", b"GET"):
            writer.write(method + b" / HTTP/1.1\r\nhost: here\r\n\r\n")
        for body in (b"body", b"", b"body"):
            assert await head_of(reader) == b"HTTP/1.1 200 OK"
            assert await reader.readexactly(len(body)) == body
        writer.write(b"HEAD / HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n")
        assert await head_of(reader) == b"HTTP/1.1 200 OK"
        assert await reader.read() == b""
