"""One side of a stream: sends at most a window of unacknowledged bytes, and continues over another connection.

Both sides keep what the other has not acknowledged. After a connection was cut, each says over the next one how much
it has taken, and the other sends the rest again: no byte is lost or doubled.
"""

import asyncio
from collections import deque
from typing import Protocol

from determined.streams.records import MAX_CONTENT_BYTES, Record, StreamBroken, decode, encode, encode_offset

WINDOW_BYTES = 1 << 20
"""Bytes that one side sends before the other has taken them."""
ACKNOWLEDGE_BYTES = WINDOW_BYTES // 4
HEARTBEAT_SECONDS = 10.0
SILENCE_SECONDS = 3 * HEARTBEAT_SECONDS
"""A connection over which nothing came for this time counts as cut."""


class Cut(Exception):
    """Raised by a socket whose connection is gone. ``is_final``: the other side has ended the stream by intention."""

    def __init__(self, reason: str = "", *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


class Socket(Protocol):
    """A connection that keeps messages apart. Both methods raise Cut."""

    async def send(self, message: bytes, /) -> None: ...

    async def receive(self) -> bytes: ...


class WindowedStream:
    """Sends and receives records over one connection after the other.

    Example::

        stream = WindowedStream()
        pump = asyncio.create_task(stream.attach(socket))
        await stream.send(Record(Kind.INPUT, b"ls\\n"))
        record = await stream.receive()
    """

    def __init__(self) -> None:
        self._unacknowledged: deque[bytes] = deque()
        self._acknowledged = 0
        """Bytes that the other side has taken."""
        self._added = 0
        """Bytes that were given to ``send``."""
        self._sent: int = 0
        """Bytes that were sent over the present connection, from the beginning of the stream."""
        self._inbox: deque[Record] = deque()
        self._arrived = self._taken = self._told = 0
        """Bytes that came, that ``receive`` returned, and of which the other side was told."""
        self._is_asked = False
        """True if the other side waits to be told."""
        self._changed = asyncio.Condition()
        self._is_closed = False
        self._heard_at = 0.0
        """When the last message came over the present connection, in seconds of the event loop."""

    @property
    def is_acknowledged(self) -> bool:
        """Returns True if the other side has taken all that was sent."""
        return self._acknowledged == self._added

    async def send(self, record: Record) -> None:
        """Adds a record; waits while the window is full. Raises Cut after ``close``."""
        if len(record.content) > MAX_CONTENT_BYTES:
            raise ValueError(f"a record has at most {MAX_CONTENT_BYTES} bytes")
        message = encode(record)
        async with self._changed:
            await self._changed.wait_for(
                lambda: self._is_closed or self._added - self._acknowledged + len(message) <= WINDOW_BYTES
            )
            if self._is_closed:
                raise Cut("the stream has ended", is_final=True)
            self._unacknowledged.append(message)
            self._added += len(message)
            self._changed.notify_all()

    async def receive(self) -> Record:
        """Returns the next record. Raises Cut after ``close``."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._inbox or self._is_closed)
            if not self._inbox:
                raise Cut("the stream has ended", is_final=True)
            record = self._inbox.popleft()
            self._taken += len(record.content) + 1
            if self._must_tell:
                self._changed.notify_all()
            return record

    async def acknowledged(self) -> None:
        """Waits until the other side has taken everything, or the stream is closed."""
        async with self._changed:
            await self._changed.wait_for(lambda: self._is_closed or self.is_acknowledged)

    async def acknowledge(self) -> None:
        """Tells the other side soon what was taken: it waits for that, and not for room."""
        async with self._changed:
            self._is_asked = self._taken != self._told
            self._changed.notify_all()

    async def close(self) -> None:
        """Ends the stream: those who wait for records or for room get Cut."""
        async with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    async def attach(self, socket: Socket) -> None:
        """Uses a connection until it is cut. Raises Cut, and StreamBroken if the other side breaks the protocol."""
        async with self._changed:
            # The other side sends again what came and was not taken.
            self._inbox.clear()
            self._arrived = self._told = self._taken
        await socket.send(encode_offset(self._taken))
        self._heard_at = asyncio.get_running_loop().time()
        has_begun = asyncio.Event()
        tasks = [
            asyncio.create_task(each)
            for each in (self._receive_all(socket, has_begun), self._send_all(socket, has_begun), self._beat())
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def _must_tell(self) -> bool:
        return self._is_asked or self._taken - self._told >= ACKNOWLEDGE_BYTES

    async def _send_all(self, socket: Socket, has_begun: asyncio.Event) -> None:
        await has_begun.wait()
        while True:
            messages: list[bytes] = []
            async with self._changed:
                await self._changed.wait_for(lambda: self._sent < self._added or self._must_tell)
                if self._sent < self._added:
                    messages = self._unsent()
                    self._sent = self._added
                if self._must_tell:
                    self._told = self._taken
                    self._is_asked = False
                    messages.append(encode_offset(self._taken))
            for message in messages:
                await socket.send(message)

    async def _beat(self) -> None:
        """Lets the other side know that this one lives, and watches that the other does. Raises Cut."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(HEARTBEAT_SECONDS, SILENCE_SECONDS))
            if loop.time() - self._heard_at >= SILENCE_SECONDS:
                raise Cut("the other side was silent")
            async with self._changed:
                self._is_asked = True
                self._changed.notify_all()

    def _unsent(self) -> list[bytes]:
        """Returns the messages that were not sent over the present connection."""
        left = self._added - self._sent
        messages: list[bytes] = []
        for message in reversed(self._unacknowledged):
            if left <= 0:
                break
            messages.append(message)
            left -= len(message)
        return messages[::-1]

    async def _receive_all(self, socket: Socket, has_begun: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        while True:
            message = decode(await socket.receive())
            self._heard_at = loop.time()
            async with self._changed:
                if isinstance(message, int):
                    self._acknowledge(message)
                    if not has_begun.is_set():
                        self._sent = self._acknowledged
                        has_begun.set()
                elif not has_begun.is_set():
                    raise StreamBroken("the first message is no offset")
                else:
                    self._arrived += len(message.content) + 1
                    if self._arrived - self._taken > WINDOW_BYTES:
                        raise StreamBroken("the other side sent more than the window")
                    self._inbox.append(message)
                self._changed.notify_all()

    def _acknowledge(self, offset: int) -> None:
        if not self._acknowledged <= offset <= self._added:
            raise StreamBroken(f"the other side has taken {offset} bytes of {self._added}")
        while self._unacknowledged and self._acknowledged + len(self._unacknowledged[0]) <= offset:
            self._acknowledged += len(self._unacknowledged.popleft())
        if self._acknowledged != offset:
            raise StreamBroken("the other side has taken a part of a record")
