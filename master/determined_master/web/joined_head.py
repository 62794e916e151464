"""Sends the head of a response together with the start of its body: each write is a system call and a packet."""

import asyncio

MAX_JOINED_BYTES = 1 << 16
"""A longer body is written by itself: joining copies it."""


class JoinedHead:
    """Stands for the transport of one response. What is written first is kept for the next write of the same turn of
    the event loop, and sent without one at the end of that turn."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head: bytes | None = None
        self._is_sent = False

    def write(self, data: bytes) -> None:
        if self._is_sent:
            self._transport.write(data)
        elif self._head is None:
            self._head = data
            self._loop.call_soon(self.flush)
        elif len(data) > MAX_JOINED_BYTES:
            self.flush()
            self._transport.write(data)
        else:
            self._is_sent = True
            self._transport.write(self._head + data)

    def flush(self) -> None:
        """Sends what is kept."""
        if not self._is_sent and self._head is not None:
            self._is_sent = True
            self._transport.write(self._head)

    def close(self) -> None:
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()
