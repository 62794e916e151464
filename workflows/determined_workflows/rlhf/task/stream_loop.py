"""The thread of a stream server: admits workers, sends one request at a time to each, and completes replies."""

import collections
import contextlib
import dataclasses
import json
import socket
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import zmq

from determined_launch import handshake
from determined_workflows.rlhf.task import stream_messages as messages
from determined_workflows.rlhf.task.frames import FrameError
from determined_workflows.rlhf.task.named_array import loads
from determined_workflows.rlhf.task.stream_gate import Gate

MAX_STRANGERS = 1024
MAX_ANSWER_BYTES = 1024
LOG_SECONDS = 10.0


@dataclasses.dataclass
class Pending:
    """A request that waits for its turn or for its reply."""

    worker: str
    handle: str
    metadata: dict[str, Any]
    frames: list[Any]
    future: "Future[messages.Reply]"
    number: int = 0


class ServerLoop:
    """Owns the sockets of a stream server. ``run`` is the thread; ``submit`` and ``stop`` are called from others."""

    def __init__(self, host: str, port: int, key: bytes, workers: Sequence[str], max_frame_bytes: int) -> None:
        self._key, self._workers, self._max_frame_bytes = key, list(workers), max_frame_bytes
        self.changed = threading.Condition()
        self.connected: dict[str, bytes] = {}
        """Routing identities of the workers that have proved the key."""
        self._names: dict[bytes, str] = {}
        self._challenges: collections.OrderedDict[bytes, bytes] = collections.OrderedDict()
        self._queues: dict[str, collections.deque[Pending]] = {name: collections.deque() for name in workers}
        self._in_flight: dict[str, Pending] = {}
        self._numbers = dict.fromkeys(workers, 0)
        self._submitted: collections.deque[Pending] = collections.deque()
        self._is_closing = False
        self._complained = -LOG_SECONDS
        self._context = zmq.Context()
        self._gate = Gate(self._context, key)
        self._router = self._context.socket(zmq.ROUTER)
        self._router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        messages.tune(self._router, max_frame_bytes)
        self._router.setsockopt(zmq.PLAIN_SERVER, 1)
        self._router.setsockopt(zmq.IPV6, int(host == "*" and socket.has_ipv6))
        try:
            self._router.bind(messages.endpoint(host, port or "*"))
        except zmq.ZMQError as error:
            self._router.close(0)
            self._gate.close()
            self._context.term()
            raise OSError(error.errno, f"the streams cannot listen on port {port}: {error.strerror}") from None
        self.port = int(self._router.getsockopt_string(zmq.LAST_ENDPOINT).rsplit(":", 1)[1])
        self._monitor = self._router.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
        )
        self._wake_up, self._woken = socket.socketpair()
        self._wake_up.setblocking(False)
        self._woken.setblocking(False)

    def submit(self, pending: Pending) -> None:
        """Takes a request to be sent. Its future fails if the server was closed."""
        with self.changed:
            if not self._is_closing:
                self._submitted.append(pending)
                self._wake()
                return
        pending.future.set_exception(ConnectionError("the streams are closed"))

    def stop(self) -> None:
        """Ends the thread."""
        with self.changed:
            if not self._is_closing:
                self._is_closing = True
                self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):  # full: the thread wakes up anyway
            self._wake_up.send(b"\0")

    def run(self) -> None:
        """Serves until ``stop``."""
        poller = zmq.Poller()
        for readable in (self._router, self._gate.socket, self._monitor, self._woken):
            poller.register(readable, zmq.POLLIN)
        try:
            while not self._is_closing:
                ready = dict(poller.poll())
                if self._gate.socket in ready and (refusal := self._gate.answer()):
                    self._complain(refusal)
                if self._monitor in ready:
                    self._monitor.recv_multipart()
                    self._complain("a peer that does not speak the protocol, or has the key of another allocation")
                if self._woken.fileno() in ready:
                    self._take_submitted()
                if self._router in ready:
                    self._receive()
        finally:
            self._end()

    def _take_submitted(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(4096)
        while self._submitted:
            pending = self._submitted.popleft()
            self._queues[pending.worker].append(pending)
            self._send_next(pending.worker)

    def _send_next(self, worker: str) -> None:
        """Sends the next request to a worker that is connected and has none."""
        if worker in self._in_flight or worker not in self.connected or not self._queues[worker]:
            return
        pending = self._in_flight[worker] = self._queues[worker].popleft()
        self._numbers[worker] += 1
        pending.number = self._numbers[worker]
        text = messages.header(number=pending.number, handle=pending.handle, metadata=pending.metadata)
        try:
            # Without copies: the arrays stay as they are until the reply is there, as ``request`` demands.
            parts = [self.connected[worker], messages.REQUEST, text, *pending.frames]
            self._router.send_multipart(parts, copy=False)
        except zmq.ZMQError as error:
            del self._in_flight[worker]
            pending.future.set_exception(ConnectionError(f"the worker {worker} is gone: {error.strerror}"))
        pending.frames = []

    def _receive(self) -> None:
        route, *parts = self._router.recv_multipart(copy=False)
        identity = route.bytes
        kind = parts[0].bytes if parts and len(parts[0]) < 16 else b""
        worker = self._names.get(identity)
        if kind == messages.REPLY and worker is not None:
            self._complete(worker, parts[1:])
        elif kind == messages.HELLO and worker is None:
            self._challenges[identity] = handshake.challenge()
            if len(self._challenges) > MAX_STRANGERS:
                self._challenges.popitem(last=False)
            self._send(identity, messages.CHALLENGE, self._challenges[identity])
        elif kind == messages.ANSWER and len(parts) == 2 and len(parts[1]) < MAX_ANSWER_BYTES:
            self._admit(identity, parts[1].bytes)
        else:
            self._complain(f"a message out of order of {worker or 'a peer that has not proved the key'}")

    def _admit(self, identity: bytes, answer: bytes) -> None:
        nonce = self._challenges.pop(identity, None)
        admitted = nonce and handshake.admit_answer(self._key, nonce, answer, ends=messages.ENDS)
        if not admitted:
            self._complain("a peer without the allocation's key")
            return
        said, proof = admitted
        name = said.decode("utf-8", "replace")
        if name not in self._queues or name in self.connected:
            reason = f"a second worker {name}" if name in self.connected else f"no worker {name} is in this experiment"
            self._complain(reason)
            self._send(identity, messages.REFUSED, proof, reason.encode())
            return
        self._send(identity, messages.WELCOME, proof, json.dumps({"max_frame_bytes": self._max_frame_bytes}).encode())
        self._names[identity] = name
        with self.changed:
            self.connected[name] = identity
            self.changed.notify_all()
        self._send_next(name)

    def _complete(self, worker: str, parts: Sequence[zmq.Frame]) -> None:
        pending = self._in_flight.get(worker)
        try:
            if not parts:
                raise FrameError("no header")
            number, _, metadata = messages.read_header(parts[0].buffer)
            if pending is None or number != pending.number:
                self._complain(f"a reply of {worker} to request {number}, which does not wait for one")
                return
            messages.check_sizes([part.buffer for part in parts[1:]], self._max_frame_bytes, f"the reply of {worker}")
            reply = messages.Reply(loads([part.buffer for part in parts[1:]]), metadata)
        except ValueError as error:
            self._complain(f"a reply of {worker}: {error}")
            if pending is not None:
                del self._in_flight[worker]
                pending.future.set_exception(FrameError(f"the reply of {worker} to {pending.handle}: {error}"))
        else:
            del self._in_flight[worker]
            pending.future.set_result(reply)
        self._send_next(worker)

    def _send(self, identity: bytes, *parts: bytes) -> None:
        with contextlib.suppress(zmq.ZMQError):  # gone again
            self._router.send_multipart([identity, *parts], zmq.NOBLOCK)

    def _complain(self, text: str) -> None:
        """Logs what was dropped: one line in ten seconds, so that a stranger cannot fill the log."""
        if time.monotonic() - self._complained >= LOG_SECONDS:
            self._complained = time.monotonic()
            print(f"streams: dropped {text}", file=sys.stderr, flush=True)

    def _end(self) -> None:
        with self.changed:
            self._is_closing = True
            waiting = [*self._submitted, *(pending for queue in self._queues.values() for pending in queue)]
        for identity in self.connected.values():
            self._send(identity, messages.CLOSE)
        self._router.disable_monitor()
        self._monitor.close(0)
        self._router.close()
        self._gate.close()
        self._wake_up.close()
        self._woken.close()
        for pending in [*self._in_flight.values(), *waiting]:
            pending.future.set_exception(ConnectionError(f"the streams were closed before {pending.worker} replied"))
        self._context.term()
