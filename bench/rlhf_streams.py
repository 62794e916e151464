"""NamedArray against pickle, and a round trip through the streams against bare pyzmq."""

import multiprocessing
import pickle
import statistics
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from typing import Any

import numpy as np
import zmq

from bench.figure import Figure, paired
from determined_workflows.rlhf.task.named_array import NamedArray, dumps, loads
from determined_workflows.rlhf.task.streams import StreamClient, StreamServer

MEGABYTE = 1 << 20
CALLS = 100
KEY = b"k" * 32


def figures(rounds: int = 15) -> list[Figure]:
    x = NamedArray(
        ids=np.ones((64, 32 << 10), np.int64),
        logits=np.ones((64, 128 << 10), np.float32),
        mask=np.ones((64, 256 << 10), bool),
    )
    contiguous, first = paired(seconds_of(lambda: through_frames(x)), seconds_of(lambda: through_pickle(x)), rounds)
    buffers, second = paired(seconds_of(lambda: over_socket(x)), seconds_of(lambda: buffers_over_socket(x)), rounds)
    round_trips, third = paired(Streams(), Bare(), rounds)
    return [
        Figure("NamedArray of 64 MB, one copy / pickle 5 to one bytes", 1.0, contiguous, note=f"{first} s"),
        Figure("the same, copies of both sides / out-of-band buffers", 1.2, buffers, note=f"{second} s"),
        Figure("a round trip of 1 MB through the streams / bare pyzmq", 2.0, round_trips, note=f"{third} ms"),
    ]


def through_frames(x: NamedArray) -> Any:
    return loads([bytearray(frame) for frame in dumps(x)])


def through_pickle(x: NamedArray) -> Any:
    return pickle.loads(pickle.dumps(x, protocol=5))


def over_socket(x: NamedArray) -> Any:
    return loads([bytearray(bytes(frame)) for frame in dumps(x)])


def buffers_over_socket(x: NamedArray) -> Any:
    buffers: list[pickle.PickleBuffer] = []
    text = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    received = [bytearray(bytes(buffer.raw())) for buffer in buffers]
    return pickle.loads(bytes(bytes(text)), buffers=received)


def seconds_of(work: Callable[[], Any]) -> Callable[[], float]:
    def measure() -> float:
        began = time.perf_counter()
        work()
        return time.perf_counter() - began

    return measure


class Streams:
    """Each call returns the median of round trips in milliseconds, of a NamedArray with one array of 1 MB."""

    def __init__(self) -> None:
        self._server = StreamServer(0, KEY, ["worker"], host="127.0.0.1")
        self._process = _start(_echo, self._server.port)
        self._server.wait_for_workers(60)
        self._data = NamedArray(a=np.ones(MEGABYTE, np.uint8))

    def __call__(self) -> float:
        return _median(lambda: self._server.request("worker", "echo", self._data).result())


class Bare:
    """The same by two sockets and a bytes object, without copies in Python."""

    def __init__(self) -> None:
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.ROUTER)
        self._process = _start(_bare_echo, self._socket.bind_to_random_port("tcp://127.0.0.1"))
        self._peer: bytes = self._socket.recv_multipart()[0]
        self._data = bytes(MEGABYTE)

    def __call__(self) -> float:
        return _median(self._round_trip)

    def _round_trip(self) -> None:
        self._socket.send_multipart([self._peer, self._data], copy=False)
        self._socket.recv_multipart(copy=False)


def _median(work: Callable[[], Any]) -> float:
    measure = seconds_of(work)
    return 1000 * statistics.median(measure() for _ in range(CALLS))


def _start(target: Callable[[int], None], port: int) -> BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=target, args=(port,), daemon=True)
    process.start()
    return process


def _echo(port: int) -> None:
    client = StreamClient("127.0.0.1", port, KEY, "worker")
    while (request := client.receive()) is not None:
        client.reply(request, request.data)


def _bare_echo(port: int) -> None:
    socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    socket.connect(f"tcp://127.0.0.1:{port}")
    socket.send(b"ready")
    while True:
        socket.send_multipart(socket.recv_multipart(copy=False), copy=False)
