"""Connections that unauthenticated clients hold open: they are closed, and other requests are answered."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.support.cluster import open_cluster
from tests.support.waiting import eventually

from determined_master.server import http_server
from determined_master.server.http_server import Server, Sweeper, config_of, raise_descriptor_limit

HEADER_SECONDS = 2.0
Writer = asyncio.StreamWriter


@contextlib.asynccontextmanager
async def served(
    folder: Path, *, max_connections: int = 100_000, header_seconds: float = HEADER_SECONDS
) -> AsyncIterator[tuple[Server, str, int]]:
    """Yields the master's real HTTP server, its URL and its port."""
    async with open_cluster(folder) as cluster:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            sweeper = Sweeper(max_connections=max_connections, header_seconds=header_seconds)
            config = config_of(cluster.app)
            config.lifespan = "off"
            server = Server(config, cluster.master.notifications, sweeper)
            serving = asyncio.create_task(server.serve(sockets=[listener]))
            await eventually(lambda: server.started)
            port = listener.getsockname()[1]
            try:
                yield server, f"http://127.0.0.1:{port}", port
            finally:
                server.should_exit = server.force_exit = True
                await serving


async def connect(port: int, count: int) -> list[Writer]:
    return [(await asyncio.open_connection("127.0.0.1", port))[1] for _ in range(count)]


async def drip(writers: list[Writer]) -> None:
    """Sends one byte of an endless request head on each connection, again and again."""
    alive = list(writers)
    while alive:
        for writer in list(alive):
            try:
                writer.write(b"G" if writer not in _BEGUN else b"x")
                _BEGUN.add(writer)
                await writer.drain()
            except (ConnectionError, RuntimeError):
                alive.remove(writer)
        await asyncio.sleep(0.2)


_BEGUN: set[Writer] = set()


@pytest.mark.parametrize(
    ("idle", "drips"), [(200, 20), pytest.param(2000, 200, marks=pytest.mark.long)], ids=["sample", "all"]
)
async def test_idle_and_dripping_connections_are_closed_while_other_requests_are_answered(
    tmp_path: Path, idle: int, drips: int
):
    raise_descriptor_limit()
    async with served(tmp_path) as (server, url, port):
        async with httpx.AsyncClient(base_url=url, timeout=90) as client:
            held = await connect(port, idle)
            slow = await connect(port, drips)
            dripper = asyncio.create_task(drip(slow))
            answered = failed = 0
            deadline = time.monotonic() + 60
            while len(server.server_state.connections) > 5:
                assert time.monotonic() < deadline, f"{len(server.server_state.connections)} connections are left"
                answer = await client.get("/health")
                answered, failed = answered + (answer.status_code == 200), failed + (answer.status_code != 200)
            dripper.cancel()
            for writer in (*held, *slow):
                writer.close()
    print(f"{idle} idle and {drips} dripping connections ended; {answered} requests answered, {failed} failed")
    assert answered > 0
    assert failed == 0


async def test_a_slow_body_that_goes_on_is_read_to_its_end_and_a_stalled_one_is_closed(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(http_server, "BODY_GRACE_SECONDS", 1.0)
    async with served(tmp_path) as (server, _url, port):
        head = b"POST /api/v1/auth/login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 20000\r\n\r\n"
        reader, steady = await asyncio.open_connection("127.0.0.1", port)
        steady.write(head)
        (stalled,) = await connect(port, 1)
        stalled.write(head)
        for _ in range(20):
            steady.write(b" " * 1000)
            await steady.drain()
            await asyncio.sleep(0.2)
        assert (await reader.readline()).startswith(b"HTTP/1.1 4")  # read to its end, and refused as no JSON
        await eventually(lambda: len(server.server_state.connections) <= 1)
        steady.close()
        stalled.close()


async def test_connections_above_the_maximum_close_the_oldest_idle_ones(tmp_path: Path):
    async with served(tmp_path, max_connections=10, header_seconds=3600) as (server, url, port):
        old = [await asyncio.open_connection("127.0.0.1", port) for _ in range(10)]
        await eventually(lambda: len(server.sweeper.observed) == 10)
        new = [await asyncio.open_connection("127.0.0.1", port) for _ in range(10)]
        await eventually(lambda: all(reader.at_eof() for reader, _ in old))
        assert not any(reader.at_eof() for reader, _ in new)
        async with httpx.AsyncClient(base_url=url) as client:
            assert (await client.get("/health")).status_code == 200
        for _, writer in (*old, *new):
            writer.close()
