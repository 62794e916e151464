"""A connection of the master itself into a task, for what it passes on: pages, and bytes of other protocols."""

import asyncio
from collections.abc import Awaitable, Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from determined.errors import DeterminedError
from determined.link.messages import SshAccess
from determined.streams.records import MAX_CONTENT_BYTES, NORMAL, Kind, Record, StreamBroken, is_final
from determined.streams.windowed import Cut, WindowedStream
from determined_master.streams.broker import Stream, StreamBroker
from determined_master.streams.relay import close
from determined_master.streams.target import Target


class ConnectionFailed(DeterminedError):
    """The task did not take the connection, or lost it; the text says why."""


class AgentSocket:
    """The agent's end of a stream, as a :class:`WindowedStream` uses it."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def send(self, message: bytes, /) -> None:
        try:
            await self._socket.send_bytes(message)
        except (WebSocketDisconnect, RuntimeError) as problem:
            raise Cut("the connection to the agent was lost") from problem

    async def receive(self) -> bytes:
        try:
            return await self._socket.receive_bytes()
        except WebSocketDisconnect as end:
            reason = end.reason or "the connection to the agent was lost"
            raise Cut(reason, is_final=is_final(end.code)) from end
        except RuntimeError as problem:
            raise Cut("the connection to the agent was lost") from problem
        except KeyError as problem:
            raise StreamBroken("a stream has binary messages only") from problem


class TaskConnection:
    """Bytes to a task and from it. It does not continue over another connection when it is cut.

    Example::

        connection = await TaskConnection.open(broker, target, "ada", port=8888, is_signed_in=check)
        try:
            await connection.write(b"GET / HTTP/1.0\\r\\n\\r\\n")
            answer = await connection.read()
        finally:
            await connection.close()
    """

    def __init__(self, broker: StreamBroker, stream: Stream, agent: WebSocket) -> None:
        self._broker, self._stream, self._agent = broker, stream, agent
        self._windowed = WindowedStream()
        self._failure = ""
        self._is_at_end = False
        self.admitted = asyncio.Event()
        """Set, for SSH, once its client has shown a key that is let in."""
        self._running = asyncio.create_task(self._run(), name=f"connection into a task {stream.id}")

    @classmethod
    async def open(
        cls,
        broker: StreamBroker,
        target: Target,
        user: str,
        *,
        is_signed_in: Callable[[], Awaitable[bool]],
        port: int = 0,
        ssh: SshAccess | None = None,
    ) -> "TaskConnection":
        """Opens a connection to a port of a task, or to its SSH. Whether it is taken is known by the first ``read``.

        Args: as those of :meth:`StreamBroker.open`; who calls it asks ``is_signed_in`` while the connection is open.
        SSH is no use of the task until its client is let in.

        Raises Conflict and TooManyRequests as that does, and NobodyCame if the agent does not connect.
        """
        stream, _ = await broker.open(target, user, is_signed_in=is_signed_in, port=port, ssh=ssh, is_use=ssh is None)
        try:
            agent = await broker.meet_agent(stream)
        except BaseException:
            broker.end(stream)
            raise
        return cls(broker, stream, agent)

    async def read(self) -> bytes:
        """Returns the next bytes of the task, at most 64 KiB, and b"" after the last. Raises ConnectionFailed."""
        while not self._is_at_end:
            try:
                record = await self._windowed.receive()
            except Cut:
                raise ConnectionFailed(self._failure or "the connection into the task was lost") from None
            if record.kind is Kind.OUTPUT and record.content:
                return record.content
            if record.kind is Kind.ADMITTED:
                self._broker.note_use(self._stream)
                self.admitted.set()
            if record.kind is Kind.STATUS and "error" in record.value:
                self._is_at_end = True
                self._failure = str(record.value["error"])
                raise ConnectionFailed(self._failure)
            self._is_at_end = record.kind in (Kind.END, Kind.STATUS)
        return b""

    async def write(self, data: bytes) -> None:
        """Passes bytes to the task; waits while it takes none. Raises ConnectionFailed."""
        for start in range(0, len(data), MAX_CONTENT_BYTES):
            await self._send(Record(Kind.INPUT, bytes(data[start : start + MAX_CONTENT_BYTES])))

    async def end_input(self) -> None:
        """Tells the task that no more bytes follow. Raises ConnectionFailed."""
        await self._send(Record(Kind.END))

    async def close(self) -> None:
        """Ends the connection. Idempotent."""
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def _send(self, record: Record) -> None:
        try:
            await self._windowed.send(record)
        except Cut:
            raise ConnectionFailed(self._failure or "the connection into the task was lost") from None

    async def _run(self) -> None:
        try:
            await self._windowed.attach(AgentSocket(self._agent))
        except (Cut, StreamBroken) as problem:
            self._failure = self._failure or str(problem)
        finally:
            self._broker.end(self._stream)
            await self._windowed.close()
            await close(self._agent, NORMAL)
