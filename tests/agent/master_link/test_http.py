"""The small HTTP client against a server with scripted answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from determined_agent.master_link.http import HttpClient, HttpError


class Scripted:
    """A server that gives its answers in order, one for each request. None closes the connection instead."""

    def __init__(self, *answers: bytes | None) -> None:
        self.answers = list(answers)
        self.requests: list[bytes] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(length))
                answer = self.answers.pop(0)
                if answer is None:
                    return
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def client_of(server: Scripted, **options: Any) -> AsyncIterator[HttpClient]:
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    async with aclosing(HttpClient(f"http://127.0.0.1:{port}/base/", "token", **options)) as client:
        yield client
    listener.close()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"


async def test_requests_reuse_one_connection_and_send_the_token() -> None:
    server = Scripted(OK, CHUNKED, OK)
    async with client_of(server) as client:
        assert (await client.request("POST", "/x", b"body")).body == b"ok"
        assert (await client.request("GET", "/y")).body == b"abcde"
        assert (await client.request("GET", "/z")).status == 200
    assert server.connections == 1
    assert server.requests[0].startswith(b"POST /base/x HTTP/1.1\r\n")
    assert server.requests[0].endswith(b"\r\n\r\nbody")
    assert b"Authorization: Bearer token" in server.requests[0]


async def test_a_reused_connection_that_was_closed_is_reopened() -> None:
    server = Scripted(OK, None, OK)
    async with client_of(server) as client:
        await client.request("GET", "/x")
        assert (await client.request("GET", "/x")).body == b"ok"
    assert server.connections == 2


async def test_a_shared_client_has_a_connection_for_each_caller_and_reopens_closed_ones() -> None:
    answering = asyncio.Barrier(2)

    class Together(Scripted):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await answering.wait()
            await super().serve(reader, writer)

    server = Together(OK, OK, None, None)
    async with client_of(server, is_shared=True) as client:
        answers = await asyncio.gather(client.request("GET", "/x"), client.request("GET", "/y"))
        assert [answer.body for answer in answers] == [b"ok", b"ok"]
        assert server.connections == 2
        server.answers += [OK, OK]
        answers = await asyncio.gather(client.request("GET", "/x"), client.request("GET", "/y"))
        assert [answer.body for answer in answers] == [b"ok", b"ok"]
    assert server.connections == 4


@pytest.mark.parametrize("answer", [None, b"rubbish\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"])
async def test_a_missing_or_broken_answer_raises_an_http_error(answer: bytes | None) -> None:
    server = Scripted(answer)
    async with client_of(server, timeout=0.3) as client:
        with pytest.raises(HttpError, match="GET /x"):
            await client.request("GET", "/x")


async def test_a_refused_connection_raises_an_http_error() -> None:
    async with aclosing(HttpClient("http://127.0.0.1:1", "")) as client:
        with pytest.raises(HttpError):
            await client.request("GET", "/x")


async def test_a_sink_receives_only_the_body_of_a_200() -> None:
    failed = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"
    pieces: list[bytes] = []
    async with client_of(Scripted(CHUNKED, failed)) as client:
        assert (await client.request("GET", "/x", sink=pieces.append)).body == b""
        assert b"".join(pieces) == b"abcde"
        assert (await client.request("GET", "/x", sink=pieces.append)).body == b"no"
    assert b"".join(pieces) == b"abcde"
