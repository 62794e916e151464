"""Windowed streams: no record is lost or doubled by cut connections, and nobody sends more than the window."""

import asyncio
import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.streams import windowed
from determined.streams.records import Kind, Record, StreamBroken, decode, encode, encode_offset
from determined.streams.windowed import Cut, WindowedStream


class Pipe:
    """One end of a connection that is cut after a number of messages."""

    def __init__(self, left: list[int]) -> None:
        self._left = left
        self.arrived: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.other: Pipe | None = None

    async def send(self, message: bytes, /) -> None:
        assert self.other is not None
        if self._left[0] <= 0:
            self.cut()
            raise Cut("cut")
        self._left[0] -= 1
        self.other.arrived.put_nowait(message)

    async def receive(self) -> bytes:
        message = await self.arrived.get()
        if message is None:
            raise Cut("cut")
        return message

    def cut(self) -> None:
        assert self.other is not None
        for end in (self, self.other):
            end.arrived.put_nowait(None)


def connected(messages: int = 1 << 30) -> tuple[Pipe, Pipe]:
    left = [messages]
    one, two = Pipe(left), Pipe(left)
    one.other, two.other = two, one
    return one, two


async def attached(stream: WindowedStream, pipe: Pipe) -> None:
    with contextlib.suppress(Cut):
        await stream.attach(pipe)


async def joined(one: WindowedStream, two: WindowedStream, cuts: list[int]) -> None:
    """Connects both sides again after each cut, the last time for good."""
    for messages in [*cuts, 1 << 30]:
        left, right = connected(messages)
        await asyncio.gather(attached(one, left), attached(two, right))


async def taken(stream: WindowedStream, count: int) -> list[Record]:
    return [await stream.receive() for _ in range(count)]


@given(
    sent=st.lists(st.binary(max_size=300), max_size=30),
    answered=st.lists(st.binary(max_size=300), max_size=30),
    cuts=st.lists(st.integers(0, 15), max_size=8),
)
def test_each_record_arrives_once_and_in_order_however_often_the_connection_is_cut(
    sent: list[bytes], answered: list[bytes], cuts: list[int]
):
    async def run() -> None:
        one, two = WindowedStream(), WindowedStream()
        there = [Record(Kind.INPUT, data) for data in sent]
        back = [Record(Kind.OUTPUT, data) for data in answered]

        async def send(stream: WindowedStream, records: list[Record]) -> None:
            for record in records:
                await stream.send(record)

        joining = asyncio.create_task(joined(one, two, cuts))
        async with asyncio.timeout(10):
            _, _, arrived, returned = await asyncio.gather(
                send(one, there), send(two, back), taken(two, len(there)), taken(one, len(back))
            )
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)
        assert (arrived, returned) == (there, back)

    asyncio.run(run())


async def test_records_on_their_way_when_a_connection_is_cut_are_sent_again():
    one, two = WindowedStream(), WindowedStream()
    records = [Record(Kind.INPUT, b"%d" % number) for number in range(10)]
    for record in records:
        await one.send(record)
    joining = asyncio.create_task(joined(one, two, [5, 5]))
    async with asyncio.timeout(5):
        assert await taken(two, 10) == records
    joining.cancel()


async def test_a_sender_waits_when_the_other_side_takes_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(windowed, "WINDOW_BYTES", 100)
    one, two = WindowedStream(), WindowedStream()
    joining = asyncio.create_task(joined(one, two, []))
    for _ in range(10):
        await one.send(Record(Kind.INPUT, b"123456789"))
    more = asyncio.create_task(one.send(Record(Kind.INPUT, b"x")))
    await asyncio.sleep(0)
    assert not more.done()
    await taken(two, 10)
    await two.acknowledge()
    async with asyncio.timeout(5):
        await more
    joining.cancel()


async def test_a_side_that_sends_more_than_the_window_is_cut_off(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(windowed, "WINDOW_BYTES", 100)
    stream = WindowedStream()
    ours, theirs = connected()
    attaching = asyncio.create_task(stream.attach(ours))
    await theirs.send(encode_offset(0))
    for _ in range(11):
        await theirs.send(encode(Record(Kind.INPUT, b"123456789")))
    with pytest.raises(StreamBroken, match="more than the window"):
        await attaching


@pytest.mark.parametrize("offset", [1, 7, 1 << 63])
async def test_an_offset_that_was_never_sent_ends_the_stream(offset: int):
    stream = WindowedStream()
    await stream.send(Record(Kind.OUTPUT, b"hello"))
    ours, theirs = connected()
    attaching = asyncio.create_task(stream.attach(ours))
    await theirs.send(encode_offset(offset))
    with pytest.raises(StreamBroken):
        await attaching


async def test_a_connection_over_which_nothing_comes_counts_as_cut(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(windowed, "SILENCE_SECONDS", 0.05)
    stream = WindowedStream()
    ours, theirs = connected()
    await theirs.send(encode_offset(0))
    with pytest.raises(Cut, match="silent"):
        await stream.attach(ours)


async def test_a_side_tells_its_offset_again_and_again_so_that_the_other_knows_it_lives(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(windowed, "HEARTBEAT_SECONDS", 0.01)
    stream = WindowedStream()
    ours, theirs = connected()
    attaching = asyncio.create_task(stream.attach(ours))
    await theirs.send(encode_offset(0))
    async with asyncio.timeout(5):
        assert [decode(await theirs.receive()) for _ in range(4)] == [0, 0, 0, 0]
    attaching.cancel()


async def test_a_closed_stream_wakes_those_who_wait():
    stream = WindowedStream()
    waiting = asyncio.create_task(stream.receive())
    await asyncio.sleep(0)
    await stream.close()
    with pytest.raises(Cut):
        await waiting
    with pytest.raises(Cut):
        await stream.send(Record(Kind.INPUT, b"x"))
