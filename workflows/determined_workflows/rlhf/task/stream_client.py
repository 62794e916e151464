"""A worker's end of its stream: receives the master worker's requests one after the other, and replies."""

import contextlib
import json
import time
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from determined_launch import handshake
from determined_workflows.rlhf.task import stream_messages as messages
from determined_workflows.rlhf.task.array_tree import NamedArray
from determined_workflows.rlhf.task.frames import FrameError
from determined_workflows.rlhf.task.named_array import dumps, loads

GRACE_SECONDS = 5.0
"""Wait after a lost connection: the launch layer ends the workers of a dead master worker, and names that one."""


class StreamClient:
    """A worker's end of its stream. Used by one thread.

    Parameters:
        address: host of the master worker.
        port: its port.
        key: the allocation's key.
        name: the worker's name, one of ``StreamServer.workers``.
        method: codec of the replies.
        seconds: how long to wait for the master worker.

    Raises:
        ConnectionError: the server has another key, or refuses the name.
        TimeoutError: no server within ``seconds``.

    Example:
        >>> client = StreamClient("node-1", 4321, key, "actor[0]")
        >>> while (request := client.receive()) is not None:
        ...     client.reply(request, handle(request.data))
    """

    def __init__(
        self, address: str, port: int, key: bytes, name: str, *, method: str = "raw_bytes", seconds: float = 600.0
    ) -> None:
        self.name = name
        self._method = method
        self._where = f"{address}:{port}"
        self._max_frame_bytes = messages.MAX_FRAME_BYTES
        self._is_lost = False
        """True if the connection was lost right after this worker was admitted."""
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        messages.tune(self._socket, self._max_frame_bytes)
        self._socket.setsockopt(zmq.PLAIN_USERNAME, messages.GATE_USER)
        self._socket.setsockopt(zmq.PLAIN_PASSWORD, messages.gate_password(key))
        self._socket.setsockopt(zmq.IPV6, int(":" in address))
        self._monitor = self._socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH | zmq.EVENT_DISCONNECTED
        )
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)
        self._poller.register(self._monitor, zmq.POLLIN)
        try:
            self._socket.connect(messages.endpoint(address, port))
            self._prove(key, time.monotonic() + seconds)
        except BaseException:
            self._socket.setsockopt(zmq.LINGER, 0)
            self.close()
            raise

    def receive(self) -> messages.Request | None:
        """Waits for the next request and returns it; None after the server was closed.

        Raises:
            ConnectionError: the server vanished.
            FrameError: a damaged request.
        """
        kind, *parts = self._next(None)
        if kind.bytes == messages.CLOSE:
            return None
        if kind.bytes != messages.REQUEST or not parts:
            raise FrameError(f"the master worker at {self._where} sent {kind.bytes[:16]!r}, which is no request")
        number, handle, metadata = messages.read_header(parts[0].buffer)
        return messages.Request(handle, loads([part.buffer for part in parts[1:]]), metadata, number)

    def reply(self, request: messages.Request, data: NamedArray | None = None, **metadata: Any) -> None:  # noqa: ANN401
        """Replies to a request. The arrays of ``data`` are not copied: do not change them before the next request.

        Raises:
            ValueError: an array or the reply is larger than the limit; nothing was sent.
            TypeError: data or metadata that cannot be sent; nothing was sent.
        """
        frames = dumps(data, self._method)
        messages.check_sizes(frames, self._max_frame_bytes, f"the reply of {self.name} to {request.handle}")
        text = messages.header(number=request.number, handle=request.handle, metadata=metadata)
        self._socket.send_multipart([messages.REPLY, text, *frames], copy=False)

    def close(self) -> None:
        """Closes the stream after the last reply was sent."""
        self._socket.disable_monitor()
        self._monitor.close(0)
        self._socket.close()
        self._context.term()

    def _prove(self, key: bytes, deadline: float) -> None:
        with contextlib.suppress(zmq.Again):  # refused already: ``_next`` says why, and a send would wait for ever
            self._socket.send(messages.HELLO, zmq.NOBLOCK)
        kind, *parts = self._next(deadline)
        if kind.bytes != messages.CHALLENGE or len(parts) != 1:
            raise ConnectionError(f"what listens at {self._where} is no master worker")
        nonce = parts[0].bytes
        answer = handshake.answer(key, nonce, self.name.encode(), ends=messages.ENDS)
        self._socket.send_multipart([messages.ANSWER, answer])
        kind, *parts = self._next(deadline)
        if len(parts) != 2 or not handshake.is_proof(key, nonce, answer, parts[0].bytes, ends=messages.ENDS):
            raise ConnectionError(f"the master worker at {self._where} does not have the allocation's key")
        if kind.bytes != messages.WELCOME:
            raise ConnectionError(f"the master worker refused this worker: {parts[1].bytes.decode()}")
        self._max_frame_bytes = int(json.loads(parts[1].bytes)["max_frame_bytes"])
        event = None
        while self._monitor.poll(0):  # earlier connections may have been lost; from now on none may be
            event = recv_monitor_message(self._monitor)["event"]
        self._is_lost = event == zmq.EVENT_DISCONNECTED

    def _next(self, deadline: float | None) -> list[zmq.Frame]:
        """Returns the parts of the next message. Before ``deadline`` a server may come and go; later it is needed."""
        if self._is_lost:
            return self._after_loss()
        while True:
            left = None if deadline is None else max(0, int(1000 * (deadline - time.monotonic())))
            ready = dict(self._poller.poll(left))
            if self._socket in ready:
                return self._socket.recv_multipart(copy=False)
            if not ready:
                raise TimeoutError(f"no master worker answered at {self._where} in time")
            event = recv_monitor_message(self._monitor)["event"]
            if event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                raise ConnectionError(f"the master worker at {self._where} has the key of another allocation")
            if deadline is None and event == zmq.EVENT_DISCONNECTED:
                return self._after_loss()

    def _after_loss(self) -> list[zmq.Frame]:
        """Returns a message that came before the connection was lost. Raises ConnectionError if none comes."""
        if self._socket.poll(int(1000 * GRACE_SECONDS)):
            return self._socket.recv_multipart(copy=False)
        raise ConnectionError(f"the master worker at {self._where} is gone: its connection was lost")
