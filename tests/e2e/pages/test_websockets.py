"""Websockets of a task's page, at its origin and for programs with a token."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.e2e.pages.conftest import Serving
from tests.e2e.pages.test_pages import peak_kilobytes
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("pages")]


@asynccontextmanager
async def joined(served: Serving, path: str = "/", **options) -> AsyncIterator[ClientConnection]:
    with served.visitor(served.ports[1]) as visitor:
        origin = str(visitor.base_url).rstrip("/")
        cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    options = {"origin": origin, "additional_headers": {"Cookie": cookie}, "proxy": None, "max_size": None} | options
    async with connect(origin.replace("http", "ws", 1) + path, **options) as socket:
        yield socket


async def test_texts_bytes_and_the_subprotocol_pass_in_both_directions(served: Serving):
    async with joined(served, "/deep/path?x=1", subprotocols=["other", "echo.v1"]) as socket:
        assert socket.subprotocol == "echo.v1"
        for message in ("text ä", b"\x00\xff", "", b"", "z" * (3 << 20)):
            await socket.send(message)
            assert await socket.recv() == message


async def test_the_task_gets_no_cookie_of_the_visit(served: Serving):
    async with joined(served) as socket:
        await socket.send("headers")
        headers = {name.lower(): value for name, value in json.loads(await socket.recv())}
    assert "cookie" not in headers
    assert headers["x-forwarded-proto"] == "http"


async def test_the_close_code_of_the_task_reaches_the_visitor(served: Serving):
    async with joined(served) as socket:
        await socket.send("close")
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4321, "enough")


@pytest.mark.budget(60, "passes a gigabyte")
@pytest.mark.parametrize("mebibytes", [256, pytest.param(1024, marks=pytest.mark.long)], ids=["sample", "all"])
async def test_a_websocket_of_1_gb_passes_while_the_master_stays_small(served: Serving, mebibytes: int):
    assert served.cluster.master is not None
    pid = served.cluster.master.pid
    async with joined(served) as socket:
        await socket.send("warm")
        await socket.recv()
        before = peak_kilobytes(pid)
        await socket.send("flood")
        await socket.send(str(mebibytes))
        size = 0
        while size < mebibytes << 20:
            size += len(await socket.recv())
    assert peak_kilobytes(pid) - before < 60 << 10


async def test_a_message_that_is_too_large_ends_the_websocket_with_a_code(served: Serving):
    async with joined(served) as socket:
        await socket.send("huge")
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_a_page_of_another_origin_opens_no_websocket(served: Serving):
    for origin in ("http://localhost:1", served.cluster.url, "null"):
        with pytest.raises(InvalidStatus):
            async with joined(served, origin=origin):
                pass


async def test_without_a_visit_no_websocket_is_opened(served: Serving):
    with pytest.raises(InvalidStatus):
        async with joined(served, additional_headers={}):
            pass


async def test_a_task_that_ends_closes_the_websocket_with_a_reason(served: Serving):
    async with joined(served) as socket:
        await socket.send("x")
        await socket.recv()
        served.experiment.do("kill")
        with pytest.raises(ConnectionClosed) as closed:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code in (1012, 1001)


async def test_a_program_with_a_token_opens_a_websocket_at_the_clusters_own_address(served: Serving):
    url = f"{served.cluster.url.replace('http', 'ws', 1)}/proxy/{served.task_id}:{served.ports[1]}/deep"
    token = {"Authorization": str(served.cluster.session.headers["Authorization"])}
    async with connect(url, additional_headers=token, proxy=None) as socket:
        await socket.send("hello")
        assert await socket.recv() == "hello"
    for headers in ({}, {"Cookie": f"auth={token['Authorization'][7:]}"}):
        with pytest.raises(InvalidStatus):
            async with connect(url, additional_headers=headers, proxy=None):
                pass
