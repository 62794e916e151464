"""Sessions: kept while their connection is away, continued, ended with a reason, and never left behind."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.waiting import eventually

from determined.streams.records import MAX_CONTENT_BYTES, Kind, Record, StreamBroken, record_of
from determined.streams.windowed import Cut, WindowedStream
from determined_agent.streams import joined
from determined_agent.streams.port_connection import connect_to
from determined_agent.streams.program import NotEntered
from determined_agent.streams.session import Session


class FakeProgram:
    """Sends its input back until the end of the input."""

    def __init__(self, code: int = 0) -> None:
        self.output: asyncio.Queue[Record | None] = asyncio.Queue()
        self.calls: list[tuple[str, Any]] = []
        self.ended = asyncio.Event()
        self.status: dict[str, Any] = {"code": code}
        self.is_closed = False

    async def read(self) -> Record | None:
        return await self.output.get()

    async def write(self, data: bytes) -> None:
        self.output.put_nowait(Record(Kind.OUTPUT, data))

    async def end_input(self) -> None:
        self.output.put_nowait(None)
        self.ended.set()

    async def resize(self, rows: int, columns: int) -> None:
        self.calls.append(("resize", (rows, columns)))

    async def signal(self, number: int) -> None:
        self.calls.append(("signal", number))

    async def wait(self) -> dict[str, Any]:
        await self.ended.wait()
        return self.status

    async def close(self) -> None:
        self.is_closed = True


class Wire:
    """One end of a connection in memory."""

    def __init__(self, incoming: "asyncio.Queue[bytes | Cut]", outgoing: "asyncio.Queue[bytes | Cut]") -> None:
        self._incoming, self._outgoing = incoming, outgoing

    async def send(self, message: bytes, /) -> None:
        self._outgoing.put_nowait(message)

    async def receive(self) -> bytes:
        message = await self._incoming.get()
        if isinstance(message, Cut):
            raise message
        return message

    def cut(self, *, is_final: bool = False) -> None:
        for queue in (self._incoming, self._outgoing):
            queue.put_nowait(Cut("cut", is_final=is_final))


def wires() -> tuple[Wire, Wire]:
    one: asyncio.Queue[bytes | Cut] = asyncio.Queue()
    two: asyncio.Queue[bytes | Cut] = asyncio.Queue()
    return Wire(one, two), Wire(two, one)


class Client:
    """The other side of a session."""

    def __init__(self, session: Session) -> None:
        self.stream = WindowedStream()
        self._session = session
        self._tasks: list[asyncio.Task[None]] = []

    def connect(self) -> Wire:
        ours, theirs = wires()
        self._tasks += [asyncio.create_task(self._ended(self.stream.attach(ours)))]
        self._tasks += [asyncio.create_task(self._ended(self._session.attach(theirs)))]
        return ours

    async def disconnected(self) -> None:
        await asyncio.gather(*self._tasks)
        self._tasks.clear()

    async def status(self) -> dict[str, Any]:
        """Returns the status; drops what comes before."""
        async with asyncio.timeout(10):
            while True:
                record = await self.stream.receive()
                if record.kind is Kind.STATUS:
                    await self.stream.acknowledge()
                    return record.value

    async def _ended(self, attached: Any) -> None:
        with contextlib.suppress(Cut, StreamBroken):
            await attached


def begin(program: FakeProgram, kept: float = 60.0) -> tuple[Session, list[Session]]:
    async def make() -> FakeProgram:
        return program

    return begin_with(make, kept)


def begin_with(make: Callable[[], Any], kept: float = 60.0) -> tuple[Session, list[Session]]:
    ended: list[Session] = []
    session = Session("s1", "c1", "ada", ended.append, kept_seconds=kept)
    session.start(make)
    return session, ended


async def test_a_session_continues_over_another_connection_and_loses_nothing():
    program = FakeProgram(code=4)
    session, ended = begin(program)
    client = Client(session)
    for number in range(5):
        wire = client.connect()
        await client.stream.send(Record(Kind.INPUT, b"%d" % number))
        if number % 2:
            assert (await client.stream.receive()).content == b"%d" % (number - 1)
            assert (await client.stream.receive()).content == b"%d" % number
        wire.cut()
        await client.disconnected()
    assert not program.is_closed
    client.connect()
    await client.stream.send(Record(Kind.END))
    assert (await client.stream.receive()).content == b"4"
    assert await client.status() == {"code": 4}
    await session.closed()
    assert (program.is_closed, ended) == (True, [session])


async def test_a_client_that_ends_its_session_is_not_waited_for():
    program = FakeProgram()
    session, ended = begin(program)
    client = Client(session)
    wire = client.connect()
    await client.stream.send(Record(Kind.INPUT, b"x"))
    assert (await client.stream.receive()).content == b"x"
    wire.cut(is_final=True)
    await client.disconnected()
    async with asyncio.timeout(10):
        await session.closed()
    assert (program.is_closed, ended) == (True, [session])


async def test_a_session_whose_client_stays_away_ends_its_program():
    program = FakeProgram()
    session, ended = begin(program, kept=0.05)
    client = Client(session)
    client.connect().cut()
    async with asyncio.timeout(10):
        await session.closed()
    assert (program.is_closed, ended) == (True, [session])


async def test_a_session_to_which_nobody_ever_connects_ends_its_program():
    program = FakeProgram()
    session, _ = begin(program, kept=0.05)
    async with asyncio.timeout(10):
        await session.closed()
    assert program.is_closed


async def test_a_client_that_closes_by_intention_ends_the_program_at_once():
    program = FakeProgram()
    session, _ = begin(program)
    client = Client(session)
    client.connect().cut(is_final=True)
    await eventually(lambda: program.is_closed)


async def test_the_client_learns_why_a_session_was_ended():
    session, _ = begin(FakeProgram())
    client = Client(session)
    client.connect()
    session.end("the task has ended")
    assert await client.status() == {"error": "the task has ended"}
    await session.closed()


async def test_a_program_that_was_killed_with_its_task_ends_with_the_reason_of_the_task():
    program = FakeProgram()
    program.status = {"signal": 9}
    session, _ = begin(program)
    client = Client(session)
    client.connect()
    program.output.put_nowait(None)
    program.ended.set()
    ending = asyncio.get_running_loop().call_later(0.1, session.end, "the task has ended")
    assert await client.status() == {"error": "the task has ended"}
    ending.cancel()


async def test_the_client_learns_why_no_program_could_be_started():
    async def make() -> FakeProgram:
        raise NotEntered("cannot run 'x' in the task")

    session, _ = begin_with(make)
    client = Client(session)
    client.connect()
    assert await client.status() == {"error": "cannot run 'x' in the task"}


async def test_sizes_and_signals_reach_the_program():
    program = FakeProgram()
    session, _ = begin(program)
    client = Client(session)
    client.connect()
    await client.stream.send(record_of(Kind.RESIZE, {"rows": 50, "columns": 120}))
    await client.stream.send(record_of(Kind.SIGNAL, {"signal": 15}))
    await client.stream.send(Record(Kind.END))
    assert await client.status() == {"code": 0}
    assert program.calls == [("resize", (50, 120)), ("signal", 15)]


@pytest.mark.parametrize(
    "record",
    [
        record_of(Kind.RESIZE, {"rows": 0, "columns": 1}),
        record_of(Kind.RESIZE, {"rows": 20_000, "columns": 1}),
        record_of(Kind.RESIZE, {"rows": "1"}),
        record_of(Kind.SIGNAL, {}),
        Record(Kind.RESIZE, b"[]"),
        Record(Kind.STATUS, b"{}"),
        Record(Kind.OUTPUT, b"x"),
    ],
    ids=lambda record: f"{record.kind.name}-{record.content!r}",
)
async def test_a_record_that_no_client_sends_ends_the_session(record: Record):
    program = FakeProgram()
    session, _ = begin(program)
    client = Client(session)
    client.connect()
    await client.stream.send(record)
    status = await client.status()
    assert status["error"]
    await session.closed()
    assert program.is_closed


async def test_output_behind_a_client_that_takes_nothing_is_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(joined, "DRAIN_SECONDS", 0.01)
    program = FakeProgram()
    for _ in range(100):
        program.output.put_nowait(Record(Kind.OUTPUT, bytes(MAX_CONTENT_BYTES)))
    session, _ = begin(program)
    client = Client(session)
    client.connect()
    await asyncio.sleep(0.1)
    assert program.output.qsize() > 80, "more was read than the window holds"
    await client.stream.send(Record(Kind.END))
    for _ in range(100):
        assert (await client.stream.receive()).kind is Kind.OUTPUT
    assert await client.status() == {"code": 0}


async def test_output_that_a_program_left_open_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(joined, "DRAIN_SECONDS", 0.05)
    program = FakeProgram(code=2)
    program.output.put_nowait(Record(Kind.OUTPUT, b"last"))
    session, _ = begin(program)
    client = Client(session)
    client.connect()
    program.ended.set()
    assert (await client.stream.receive()).content == b"last"
    assert await client.status() == {"code": 2}


async def test_input_after_the_end_of_the_input_of_a_port_is_dropped() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1") as server:
        connection = await connect_to(server.sockets[0].getsockname()[1])
        await connection.write(b"before")
        await connection.end_input()
        await connection.write(b"after")
        assert await connection.read() == Record(Kind.OUTPUT, b"before")
        await connection.close()
