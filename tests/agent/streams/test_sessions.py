"""The sessions of an agent: each stream is dialed with its key, and a session is continued by its own user only."""

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.agent.streams.test_session import FakeProgram
from tests.support.waiting import eventually
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from determined.client.certificates import Trust
from determined.link.messages import Execution, OpenStream, SshAccess
from determined.link.run_folder import RunFolder
from determined.streams.records import SUBPROTOCOL, Record, decode, encode_offset
from determined_agent.streams import sessions as module
from determined_agent.streams.sessions import MasterAddress, Sessions


class Master:
    """Accepts streams and says hello; keeps how each was asked for and closed."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, list[str]]] = []
        self.closed: list[tuple[int | None, str]] = []
        self.connections: list[ServerConnection] = []
        self.received: list[bytes] = []

    async def take(self, connection: ServerConnection) -> None:
        request = connection.request
        assert request is not None
        protocols = [part.strip() for part in request.headers["Sec-WebSocket-Protocol"].split(",")]
        self.asked.append((request.path, request.headers["Authorization"], protocols))
        self.connections.append(connection)
        try:
            await connection.send(encode_offset(0))
            async for message in connection:
                assert isinstance(message, bytes)
                self.received.append(message)
        except ConnectionClosed:
            pass
        self.closed.append((connection.close_code, connection.close_reason or ""))


class Entry:
    """Starts fake programs."""

    def __init__(self) -> None:
        self.programs: list[FakeProgram] = []

    async def execute(self, folder: RunFolder, execution: Execution) -> FakeProgram:
        self.programs.append(FakeProgram())
        return self.programs[-1]

    async def connect(self, folder: RunFolder, port: int) -> FakeProgram:
        return await self.execute(folder, Execution(argv=[]))


class Opened:
    """An agent's sessions, beside a master and fake programs. ``running`` are the containers that run."""

    def __init__(self, server: Server, master: Master) -> None:
        self.master, self.entry = master, Entry()
        self.running = {"c1", "c2"}
        port = server.sockets[0].getsockname()[1]
        address = MasterAddress(f"http://127.0.0.1:{port}/base", "join", Trust())
        self.sessions = Sessions(
            address, self.entry, lambda name: RunFolder(Path(name)) if name in self.running else None
        )
        self._numbers = itertools.count()

    async def open(
        self, session_id: str = "s1", *, container: str = "c1", user: str = "ada", resumed: bool = False
    ) -> None:
        number = next(self._numbers)
        before = len(self.master.asked)
        self.sessions.open(
            OpenStream(
                stream_id=f"id{number}",
                key=f"key{number}",
                session_id=session_id,
                is_resumed=resumed,
                container_id=container,
                user=user,
                execution=Execution(argv=["x"]),
            )
        )
        await eventually(lambda: len(self.master.asked) > before)


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    master = Master()
    async with serve(master.take, "127.0.0.1", 0, subprotocols=[SUBPROTOCOL]) as server:  # type: ignore[list-item]
        created = Opened(server, master)
        yield created
        await created.sessions.close()


async def test_a_stream_is_dialed_at_its_place_with_its_key_and_the_join_token(opened: Opened):
    await opened.open()
    assert opened.master.asked == [("/base/detent/streams/id0", "Bearer join", [SUBPROTOCOL, "key0"])]


async def test_another_stream_continues_a_session_without_a_second_program(opened: Opened):
    await opened.open()
    await eventually(lambda: opened.entry.programs)
    await opened.master.connections[0].close(1012)
    await opened.open(resumed=True)
    await asyncio.sleep(0)
    assert (len(opened.entry.programs), opened.entry.programs[0].is_closed) == (1, False)


@pytest.mark.parametrize(
    "other", [{"user": "eve"}, {"container": "c2"}, {"session_id": "s2"}], ids=["user", "task", "session"]
)
async def test_a_session_of_another_user_or_task_and_one_that_never_was_are_not_continued(
    opened: Opened, other: dict[str, str]
):
    await opened.open()
    await opened.open(**other, resumed=True)
    await eventually(lambda: opened.master.closed)
    assert opened.master.closed == [(module.NO_SESSION, "the session has ended")]


async def test_a_task_has_a_bounded_number_of_sessions(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "MAX_SESSIONS_OF_CONTAINER", 2)
    for number in range(3):
        await opened.open(f"s{number}")
    await opened.open("other", container="c2")
    await eventually(lambda: opened.master.closed)
    assert [code for code, _ in opened.master.closed] == [module.REFUSED]
    await eventually(lambda: len(opened.entry.programs) == 3)


async def test_sessions_of_a_container_that_has_ended_end(opened: Opened):
    await opened.open("s1", container="c1")
    await opened.open("s2", container="c2")
    await eventually(lambda: len(opened.entry.programs) == 2)
    opened.running.remove("c1")
    opened.sessions.end_left()
    await eventually(lambda: opened.entry.programs[0].is_closed)
    assert not opened.entry.programs[1].is_closed


async def test_a_master_that_cannot_be_reached_ends_no_session(opened: Opened):
    await opened.open()
    await eventually(lambda: opened.entry.programs)
    nowhere = Sessions(
        MasterAddress("http://127.0.0.1:1", "join", Trust()), opened.entry, lambda name: RunFolder(Path(name))
    )
    nowhere.open(OpenStream(stream_id="a", key="k", session_id="s9", container_id="c1", user="ada", port=1))
    await eventually(lambda: len(opened.entry.programs) == 2)
    assert not opened.entry.programs[1].is_closed
    await nowhere.close()
    assert opened.entry.programs[1].is_closed


async def test_an_agent_without_the_package_for_ssh_says_how_to_add_it(opened: Opened, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "determined_agent.streams.ssh.connection", None)
    access = SshAccess(host_key="x", public_keys=["y"])
    opened.sessions.open(OpenStream(stream_id="a", key="k", session_id="s1", container_id="c1", user="ada", ssh=access))
    await eventually(lambda: opened.master.received)
    (record,) = [decode(message) for message in opened.master.received if decode(message) != 0]
    assert isinstance(record, Record)
    assert "the agent has no SSH server" in record.value["error"]
    assert "pip install 'detent-cluster[ssh]'" in record.value["error"]
