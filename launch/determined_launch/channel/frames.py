"""Frames of a connection: a kind, a limited length, and that many bytes."""

import json
import socket
import struct
import threading
from typing import Any

LIMIT = 1 << 20
_HEAD = struct.Struct("!BI")

REQUEST, ANSWER, STDOUT, STDERR, EXIT, SIGNAL, REFUSED = range(7)


class Closed(ConnectionError):
    """Raised if the other end closed the connection or violated the protocol."""


class Connection:
    """One end of an authenticated connection. Several threads may send."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._sending = threading.Lock()

    def send(self, kind: int, body: bytes) -> None:
        """Sends one frame. Raises Closed if the other end has disconnected."""
        try:
            with self._sending:
                self._peer.sendall(_HEAD.pack(kind, len(body)) + body)
        except OSError as error:
            raise Closed(str(error)) from None

    def send_json(self, kind: int, value: object) -> None:
        self.send(kind, json.dumps(value).encode())

    def receive(self) -> tuple[int, bytes]:
        """Returns the next frame. Raises Closed at the end of the connection and for a frame over the limit."""
        kind, length = _HEAD.unpack(self._exactly(_HEAD.size))
        if length > LIMIT:
            self.close()
            raise Closed(f"received a frame of {length} bytes, more than the limit")
        return kind, self._exactly(length)

    def receive_json(self, wanted: int) -> Any:  # noqa: ANN401  # decoded JSON
        """Returns the value of the next frame, which must be of the wanted kind."""
        kind, body = self.receive()
        if kind == REFUSED:
            raise Closed(body.decode(errors="replace"))
        if kind != wanted:
            raise Closed(f"received a frame of kind {kind}, expected {wanted}")
        try:
            return json.loads(body)
        except ValueError:
            raise Closed("received a frame that is not JSON") from None

    def patience(self, seconds: float | None) -> None:
        """Sets the time limit for receiving a frame."""
        self._peer.settimeout(seconds)

    def close(self) -> None:
        try:
            self._peer.shutdown(socket.SHUT_RDWR)  # wakes a thread in receive()
        except OSError:
            pass
        self._peer.close()

    def _exactly(self, count: int) -> bytes:
        data = bytearray()
        try:
            while len(data) < count:
                part = self._peer.recv(count - len(data))
                if not part:
                    raise Closed("the connection was closed")
                data += part
        except OSError as error:
            raise error if isinstance(error, Closed) else Closed(str(error)) from None
        return bytes(data)
