"""Passes a websocket between a visitor and a port of a task, each message only as fast as the other side takes it."""

import asyncio
import contextlib
from dataclasses import dataclass, field

from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.protocol import State
from websockets.typing import Subprotocol
from websockets.uri import WebSocketURI

from determined_master.api.proxy.failures import failure_page
from determined_master.proxy import headers
from determined_master.proxy.task_port import TaskPort
from determined_master.proxy.visits import Visit
from determined_master.streams.relay import close
from determined_master.streams.task_connection import ConnectionFailed, TaskConnection

MAX_MESSAGE_BYTES = 16 << 20
"""Of one message in either direction; a websocket as a whole has no limit."""
TASK_GONE = 1012
HANDSHAKE_SECONDS = 60.0
"""A task that does not answer the upgrade is given up: its visitor may be gone, which nobody looks at before."""
TOO_LARGE = 1009
SIGNED_OUT = 4401
NO_STATUS = 1005
ABNORMAL = 1006
INVALID = 1007


class Refused(ConnectionFailed):
    """The task does not take the websocket."""


async def serve_websocket(visit: Visit, connection: TaskConnection, socket: WebSocket, target: bytes) -> None:
    """Serves a visitor's websocket over a connection, which is closed at the end, until one side or the visit ends."""
    forwarding = WebSocketForwarding(visit.service, connection)
    try:
        await visit.run(forwarding.pass_on(socket, target.decode("latin-1")))
        await close(socket, SIGNED_OUT, "you are no longer signed in")  # unless it is closed
    except ConnectionFailed as problem:
        await socket.send_denial_response(failure_page("", visit.service, problem))
    finally:
        await connection.close()


@dataclass
class WebSocketForwarding:
    """A websocket to one port of a task, over one connection into it."""

    service: TaskPort
    connection: TaskConnection
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def pass_on(self, socket: WebSocket, target: str) -> None:
        """Passes messages until one side ends; ``target`` is path and query. Raises ConnectionFailed, and Refused,
        before the visitor's side is accepted."""
        await socket.receive()  # the visitor's request
        protocol = await self._handshake_of_visitor(socket, target)
        if protocol is None:
            with contextlib.suppress(RuntimeError, WebSocketDisconnect):
                await socket.close()
            return
        await socket.accept(protocol.subprotocol)
        directions = [
            asyncio.create_task(self._to_task(protocol, socket)),
            asyncio.create_task(self._to_visitor(protocol, socket)),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in directions:
                task.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
        await close(socket, *_end_of(protocol))

    async def _handshake_of_visitor(self, socket: WebSocket, target: str) -> ClientProtocol | None:
        """Returns None if the visitor leaves before the task has answered. Raises Refused for a task that does not."""
        shaking = asyncio.create_task(self._handshake(socket, target))
        leaving = asyncio.create_task(socket.receive())
        try:
            both = {shaking, leaving}
            done, _ = await asyncio.wait(both, timeout=HANDSHAKE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                raise Refused(f"{self.service} has not answered within {HANDSHAKE_SECONDS:g} s")
            return shaking.result() if shaking in done else None
        finally:
            for task in (shaking, leaving):
                task.cancel()
            await asyncio.gather(shaking, leaving, return_exceptions=True)

    async def _handshake(self, socket: WebSocket, target: str) -> ClientProtocol:
        path, _, query = target.partition("?")
        uri = WebSocketURI(False, "task", self.service.port, path, query)
        offered = [Subprotocol(each) for each in socket.scope.get("subprotocols") or []]
        protocol = ClientProtocol(uri, subprotocols=offered or None, max_size=MAX_MESSAGE_BYTES)
        request = protocol.connect()
        scope = socket.scope
        client = scope.get("client")
        scheme = "https" if scope["scheme"] == "wss" else "http"
        passed = headers.for_task(
            scope["headers"], label=self.service.label, scheme=scheme, client=client[0] if client else ""
        )
        for name in {name for name, _ in passed}:
            with contextlib.suppress(KeyError):
                del request.headers[name.decode("latin-1")]
        for name, value in passed:
            request.headers[name.decode("latin-1")] = value.decode("latin-1")
        protocol.send_request(request)
        await self._flush(protocol)
        while True:
            data = await self.connection.read()
            protocol.receive_data(data) if data else protocol.receive_eof()
            if protocol.handshake_exc is not None:
                raise Refused(f"{self.service} does not take this websocket: {protocol.handshake_exc}")
            if protocol.state is State.OPEN:
                return protocol
            if not data:
                raise Refused(f"{self.service} has closed the connection without an answer")

    async def _to_task(self, protocol: ClientProtocol, socket: WebSocket) -> None:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                code = int(message.get("code") or NO_STATUS)
                if protocol.state is State.OPEN:
                    if _can_be_sent(code):
                        protocol.send_close(code, str(message.get("reason") or ""))
                    else:
                        protocol.send_close()
                    await self._flush(protocol)
                return
            text = message.get("text")
            data = (message.get("bytes") or b"") if text is None else text.encode()
            if len(data) > MAX_MESSAGE_BYTES:
                await close(socket, TOO_LARGE)
                return
            if text is None:
                protocol.send_binary(data)
            else:
                protocol.send_text(data)
            await self._flush(protocol)

    async def _to_visitor(self, protocol: ClientProtocol, socket: WebSocket) -> None:
        message, is_text = bytearray(), False
        while True:
            for event in protocol.events_received():
                if not isinstance(event, Frame):
                    continue
                if event.opcode in (Opcode.TEXT, Opcode.BINARY):
                    is_text = event.opcode is Opcode.TEXT
                if event.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                    message += event.data
                    if event.fin:
                        await _send(socket, bytes(message), is_text=is_text)
                        message.clear()
            await self._flush(protocol)
            if protocol.state is not State.OPEN:
                return
            data = await self.connection.read()
            protocol.receive_data(data) if data else protocol.receive_eof()

    async def _flush(self, protocol: ClientProtocol) -> None:
        async with self._writing:
            data = b"".join(protocol.data_to_send())
            if data:
                await self.connection.write(data)


async def _send(socket: WebSocket, message: bytes, *, is_text: bool) -> None:
    if not is_text:
        await socket.send_bytes(message)
        return
    try:
        await socket.send_text(message.decode())
    except UnicodeDecodeError:
        await close(socket, INVALID, "the task has sent a text that is none")
        raise


def _end_of(protocol: ClientProtocol) -> tuple[int, str]:
    """Returns code and reason with which the visitor's side is closed."""
    code = protocol.close_code
    if code is None or code == ABNORMAL:
        if protocol.close_sent is not None:
            return protocol.close_sent.code, protocol.close_sent.reason
        return TASK_GONE, "the task has ended, or its agent was lost"
    return (code, protocol.close_reason or "") if _can_be_sent(code) else (1000, "")


def _can_be_sent(code: int) -> bool:
    return code in {1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014} or 3000 <= code <= 4999
