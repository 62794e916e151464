"""A connection of the master itself to a port of a task."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.support.cluster import Cluster
from tests.support.stream_ends import End, Running, end_of, running

from determined.link.messages import OpenStream
from determined.streams.records import Kind, Record, decode, encode, encode_offset, record_of
from determined_master.streams import broker
from determined_master.streams.broker import NobodyCame
from determined_master.streams.target import Target
from determined_master.streams.task_connection import ConnectionFailed, TaskConnection

PORT = 8888


async def is_signed_in() -> bool:
    return True


async def begun(task: Running) -> tuple[asyncio.Task[TaskConnection], OpenStream]:
    """Begins a connection; returns it and what the agent was sent."""
    opening = asyncio.create_task(
        TaskConnection.open(
            task.cluster.master.streams,
            Target(task.container_id, "one", task.task_id),
            "admin",
            is_signed_in=is_signed_in,
            port=PORT,
        )
    )
    while (message := await task.link.answer())["kind"] != "open_stream":
        pass
    return opening, OpenStream.model_validate(message)


@asynccontextmanager
async def connected(task: Running) -> AsyncIterator[tuple[TaskConnection, End]]:
    opening, message = await begun(task)
    token = task.cluster.master.secrets.join_token
    async with end_of(task.cluster, message.stream_id, message.key, token=token) as agents:
        assert (await agents.next())["type"] == "websocket.accept"
        connection = await opening
        agents.send(encode_offset(0))
        assert decode(await agents.received()) == 0
        yield connection, agents
        await connection.close()


async def test_bytes_of_the_master_reach_the_port_and_those_of_the_task_the_master(cluster: Cluster):
    async with running(cluster) as task, connected(task) as (connection, agents):
        await connection.write(b"GET /")
        assert decode(await agents.received()) == Record(Kind.INPUT, b"GET /")
        await connection.end_input()
        assert decode(await agents.received()) == Record(Kind.END)
        agents.send(encode(Record(Kind.OUTPUT, b"hello")))
        agents.send(encode(Record(Kind.END)))
        assert await connection.read() == b"hello"
        assert await connection.read() == b""
        assert await connection.read() == b""


async def test_a_long_write_is_split_and_waits_while_the_task_takes_nothing(cluster: Cluster):
    async with running(cluster) as task, connected(task) as (connection, agents):
        writing = asyncio.create_task(connection.write(bytes(3 << 20)))
        arrived = 0
        while arrived < 15 * ((64 << 10) + 1):
            record = await agents.received()
            assert len(record) == (64 << 10) + 1
            arrived += len(record)
        assert not writing.done()
        agents.send(encode_offset(arrived))
        assert len(await agents.received()) == (64 << 10) + 1
        writing.cancel()


async def test_a_port_that_refuses_is_named_and_the_words_are_the_agents(cluster: Cluster):
    async with running(cluster) as task, connected(task) as (connection, agents):
        agents.send(encode(record_of(Kind.STATUS, {"error": "nobody listens on port 8888 of the task"})))
        with pytest.raises(ConnectionFailed, match="nobody listens on port 8888"):
            await connection.read()


@pytest.mark.parametrize(("code", "reason"), [(1006, ""), (4404, "the session has ended")])
async def test_a_cut_connection_fails_reads_and_writes_with_the_reason(cluster: Cluster, code: int, reason: str):
    async with running(cluster) as task, connected(task) as (connection, agents):
        agents.close(code, reason)
        with pytest.raises(ConnectionFailed, match=reason or "the connection to the agent was lost"):
            await connection.read()
        with pytest.raises(ConnectionFailed, match=reason or "the connection to the agent was lost"):
            await connection.write(b"x")


async def test_closing_ends_the_agents_side_and_makes_room_for_another(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(broker, "MAX_STREAMS_PER_USER", 1)
    async with running(cluster) as task:
        for _ in range(2):
            async with connected(task) as (connection, agents):
                await connection.close()
                assert await agents.received() == (1000, "")


async def test_an_agent_that_does_not_come_is_said_after_the_time_for_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(broker, "MEETING_SECONDS", 0.05)
    async with running(cluster) as task:
        opening, _ = await begun(task)
        with pytest.raises(NobodyCame, match="the agent did not connect"):
            await opening
