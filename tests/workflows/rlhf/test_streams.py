"""Streams over real sockets: requests and replies, order, back-pressure, limits, keys, strangers and ends."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest
import torch
import zmq
from tests.support.free_ports import free_port

from determined_workflows.rlhf.task import stream_client, stream_messages
from determined_workflows.rlhf.task.frames import FrameError
from determined_workflows.rlhf.task.named_array import NamedArray, dumps, from_dict
from determined_workflows.rlhf.task.streams import StreamClient, StreamServer, WorkersMissing

KEY = b"k" * 32
Handler = Callable[[StreamClient, Any], None]


def echo(client: StreamClient, request: Any) -> None:
    client.reply(request, request.data, handle=request.handle, number=request.number, **request.metadata)


class Worker:
    """A client in a thread of its own."""

    def __init__(self, server: StreamServer, name: str, handler: Handler = echo, method: str = "raw_bytes") -> None:
        self.error: BaseException | None = None

        def run() -> None:
            try:
                client = StreamClient("127.0.0.1", server.port, KEY, name, method=method, seconds=5)
                while (request := client.receive()) is not None:
                    handler(client, request)
                client.close()
            except BaseException as error:
                self.error = error

        self.thread = threading.Thread(target=run)
        self.thread.start()

    def join(self) -> None:
        self.thread.join(stream_client.GRACE_SECONDS + 5)  # so long a client may wait for a server that is gone
        assert not self.thread.is_alive()


@pytest.fixture
def server() -> Iterator[StreamServer]:
    server = StreamServer(0, KEY, ["actor", "ref"], host="127.0.0.1", max_frame_bytes=1 << 20)
    yield server
    server.close()


@pytest.fixture
def actor(server: StreamServer) -> Iterator[Worker]:
    worker = Worker(server, "actor")
    yield worker
    server.close()
    worker.join()
    assert worker.error is None


def result(future: "Future[Any]") -> Any:
    return future.result(5)


def test_a_request_comes_back_with_data_and_metadata(server: StreamServer, actor: Worker) -> None:
    x = from_dict({"a": np.arange(4), "b": torch.ones(2, dtype=torch.bfloat16), "c": None}, epoch=1)
    reply = result(server.request("actor", "generate", x, step=7, text="é"))
    assert reply.metadata == {"handle": "generate", "number": 1, "step": 7, "text": "é"}
    assert reply.data.a.tolist() == [0, 1, 2, 3]
    assert reply.data.b.dtype is torch.bfloat16
    assert dict(reply.data.metadata) == {"epoch": 1}


def test_arrays_that_arrive_are_writable(server: StreamServer) -> None:
    def double(client: StreamClient, request: Any) -> None:
        request.data.a *= 2
        client.reply(request, request.data)

    worker = Worker(server, "ref", double)
    reply = result(server.request("ref", "x", NamedArray(a=np.arange(100_000))))
    reply.data.a += 1
    assert reply.data.a[-1] == 199_999
    server.close()
    worker.join()


def test_requests_before_the_worker_has_connected_wait_and_keep_their_order(server: StreamServer) -> None:
    futures = [server.request("actor", "x", None, index=index) for index in range(50)]
    worker = Worker(server, "actor")
    assert [result(future).metadata["index"] for future in futures] == list(range(50))
    assert [future.result().metadata["number"] for future in futures] == list(range(1, 51))
    server.close()
    worker.join()


def test_a_worker_has_one_request_at_a_time(server: StreamServer) -> None:
    arrived, release = threading.Semaphore(0), threading.Event()

    def wait(client: StreamClient, request: Any) -> None:
        arrived.release()
        assert release.wait(5)
        assert client._socket.poll(0) == 0  # nothing was sent behind it
        client.reply(request)

    worker = Worker(server, "actor", wait)
    futures = [server.request("actor", "x") for _ in range(5)]
    assert arrived.acquire(timeout=5)
    release.set()
    for future in futures:
        result(future)
    server.close()
    worker.join()
    assert worker.error is None


def test_two_workers_answer_independently(server: StreamServer, actor: Worker) -> None:
    other_may_reply = threading.Event()

    def late(client: StreamClient, request: Any) -> None:
        assert other_may_reply.wait(5)
        client.reply(request)

    ref = Worker(server, "ref", late)
    slow = server.request("ref", "x")
    for _ in range(10):
        result(server.request("actor", "x"))
    assert not slow.done()
    other_may_reply.set()
    result(slow)
    server.close()
    ref.join()


def test_missing_workers_are_named(server: StreamServer, actor: Worker) -> None:
    with pytest.raises(WorkersMissing, match=r"1 workers did not connect within 0.3 s: ref") as caught:
        server.wait_for_workers(0.3)
    assert caught.value.workers == ["ref"]


def test_waiting_ends_when_every_worker_is_there(server: StreamServer, actor: Worker) -> None:
    ref = Worker(server, "ref")
    server.wait_for_workers(5)
    server.close()
    ref.join()
    assert ref.error is None


def test_a_request_over_the_limit_is_refused_where_it_is_made(server: StreamServer) -> None:
    with pytest.raises(
        ValueError, match="the request generate to actor has an array of 1048577 bytes, at most 1048576"
    ):
        server.request("actor", "generate", NamedArray(a=np.zeros((1 << 20) + 1, np.uint8)))
    many = NamedArray(**{f"a{index}": np.zeros(1 << 20, np.uint8) for index in range(5)})
    with pytest.raises(ValueError, match=r"has 5243\d+ bytes, at most 4194304"):
        server.request("actor", "generate", many)


def test_a_frame_of_two_gigabytes_is_refused_by_default() -> None:
    server = StreamServer(0, KEY, ["actor"], host="127.0.0.1")
    with pytest.raises(
        ValueError, match="an array of 2147483648 bytes, at most 1073741824 are sent: use smaller batches"
    ):
        server.request("actor", "generate", NamedArray(a=np.zeros(2 << 30, np.uint8)))
    server.close()


def test_a_frame_over_the_limit_closes_its_connection_unread(server: StreamServer, actor: Worker) -> None:
    stranger = dealer(server)
    monitor = stranger.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    stranger.send(bytes(3 << 20))
    assert monitor.poll(5000)
    stranger.disable_monitor()
    monitor.close(0)
    stranger.close()
    assert result(server.request("actor", "x")).metadata["handle"] == "x"


def test_a_reply_over_the_limit_is_refused_and_the_worker_may_reply_otherwise(server: StreamServer) -> None:
    def large(client: StreamClient, request: Any) -> None:
        with pytest.raises(ValueError, match="the reply of actor to x has an array"):
            client.reply(request, NamedArray(a=np.zeros((1 << 20) + 1, np.uint8)))
        client.reply(request, error="too large")

    worker = Worker(server, "actor", large)
    assert result(server.request("actor", "x")).metadata == {"error": "too large"}
    server.close()
    worker.join()


def test_metadata_that_json_cannot_hold_are_refused(server: StreamServer) -> None:
    with pytest.raises(TypeError, match="metadata of a request or reply is JSON"):
        server.request("actor", "x", None, what=object())
    with pytest.raises(ValueError, match="send arrays as data"):
        server.request("actor", "x", None, what="x" * (2 << 20))


def test_an_unknown_worker_is_refused_with_the_nearest(server: StreamServer) -> None:
    with pytest.raises(KeyError, match="there is no worker 'aktor': did you mean 'actor'"):
        server.request("aktor", "x")


def test_closing_ends_workers_and_fails_requests_without_a_reply(server: StreamServer) -> None:
    arrived = threading.Event()
    worker = Worker(server, "actor", lambda client, request: arrived.set())
    futures = [server.request("actor", "x"), server.request("actor", "y"), server.request("ref", "z")]
    assert arrived.wait(5)
    server.close()
    worker.join()
    assert worker.error is None
    for future in futures:
        with pytest.raises(ConnectionError, match="closed before"):
            future.result(0)
    with pytest.raises(ConnectionError, match="are closed"):
        result(server.request("actor", "x"))


def test_a_second_worker_of_a_name_and_an_unknown_one_are_refused(server: StreamServer, actor: Worker) -> None:
    result(server.request("actor", "x"))
    with pytest.raises(ConnectionError, match="refused this worker: a second worker actor"):
        StreamClient("127.0.0.1", server.port, KEY, "actor", seconds=5)
    with pytest.raises(ConnectionError, match="no worker critic is in this experiment"):
        StreamClient("127.0.0.1", server.port, KEY, "critic", seconds=5)


def test_a_worker_with_another_key_is_refused(server: StreamServer, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConnectionError, match="has the key of another allocation"):
        StreamClient("127.0.0.1", server.port, b"z" * 32, "actor", seconds=5)
    server.close()  # after it, everything is written
    assert "streams: dropped a peer at 127.0.0.1 without the allocation's key" in capfd.readouterr().err


def test_no_server_is_said_with_its_address() -> None:
    port = free_port()
    with pytest.raises(TimeoutError, match=f"no master worker answered at 127.0.0.1:{port}"):
        StreamClient("127.0.0.1", port, KEY, "actor", seconds=0.2)


def test_a_port_that_is_taken_is_said(server: StreamServer) -> None:
    with pytest.raises(OSError, match=f"cannot listen on port {server.port}: Address already in use"):
        StreamServer(server.port, KEY, [], host="127.0.0.1")


def test_a_worker_may_start_before_the_server() -> None:
    port = free_port()
    worker = Worker(type("Port", (), {"port": port})(), "actor")
    time.sleep(0.2)
    late = StreamServer(port, KEY, ["actor"], host="127.0.0.1")
    late.wait_for_workers(5)
    assert result(late.request("actor", "x")).metadata["handle"] == "x"
    late.close()
    worker.join()


def test_random_bytes_are_dropped_with_one_line(
    server: StreamServer, actor: Worker, capfd: pytest.CaptureFixture[str]
) -> None:
    for text in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 40, b"\xff" * 100_000):
        with socket.create_connection(("127.0.0.1", server.port)) as stranger:
            stranger.settimeout(5)
            with contextlib.suppress(ConnectionError):
                stranger.sendall(text)
                while stranger.recv(4096):
                    pass
    assert result(server.request("actor", "x")).metadata["handle"] == "x"
    server.close()  # after it, everything is written
    assert capfd.readouterr().err.count("streams: dropped a peer that does not speak the protocol") == 1


def dealer(server: StreamServer, *, key: bytes | None = KEY) -> "zmq.Socket[bytes]":
    """Returns a socket that passes the gate if it has the key."""
    socket = zmq.Context.instance().socket(zmq.DEALER)
    socket.setsockopt(zmq.LINGER, 0)
    if key is not None:
        socket.setsockopt(zmq.PLAIN_USERNAME, stream_messages.GATE_USER)
        socket.setsockopt(zmq.PLAIN_PASSWORD, stream_messages.gate_password(key))
    socket.connect(f"tcp://127.0.0.1:{server.port}")
    return socket


@pytest.mark.parametrize("key", [None, b"z" * 32])
def test_a_stranger_cannot_send_any_message(server: StreamServer, key: bytes | None) -> None:
    stranger = dealer(server, key=key)
    with contextlib.suppress(zmq.Again):  # it may be refused before it sends
        stranger.send(stream_messages.HELLO, zmq.NOBLOCK)
    assert stranger.poll(300) == 0
    stranger.close()


@pytest.mark.parametrize(
    "parts",
    [
        [b"answer", b"x" * 80],
        [b"answer", b""],
        [b"answer"],
        [b"reply", b"{}"],
        [b"hello", b"more"],
        [b""],
        [b"request" * 100],
    ],
)
def test_messages_out_of_order_are_dropped(server: StreamServer, actor: Worker, parts: list[bytes]) -> None:
    stranger = dealer(server)
    stranger.send_multipart(parts)
    stranger.send(stream_messages.HELLO)
    assert stranger.recv_multipart()[0] == stream_messages.CHALLENGE  # it was read, and the server goes on
    assert result(server.request("actor", "x")).metadata["handle"] == "x"
    stranger.close()


def raw_reply(*parts: bytes) -> Handler:
    return lambda client, request: client._socket.send_multipart([stream_messages.REPLY, *parts])


HEADER_OF_REQUEST_1 = b'{"number":1,"handle":"x","metadata":{}}'


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([b"{"], "a header that cannot be read"),
        ([b"[]"], "a header that cannot be read"),
        ([b'{"number":true,"handle":"x","metadata":{}}'], "a header of other types"),
        ([HEADER_OF_REQUEST_1], "no frames"),
        ([HEADER_OF_REQUEST_1, b"0003{"], "damaged frames"),
        ([HEADER_OF_REQUEST_1, *dumps(NamedArray(a=np.zeros(1)), "pickle")], "are pickled"),
        ([], "no header"),
    ],
)
def test_a_damaged_reply_fails_the_request_with_the_worker_s_name(
    server: StreamServer, parts: list[bytes], text: str
) -> None:
    worker = Worker(server, "actor", raw_reply(*parts))
    with pytest.raises(FrameError, match=f"the reply of actor to x: .*{text}"):
        result(server.request("actor", "x"))
    server.close()
    worker.join()


def test_a_reply_to_another_request_is_dropped(server: StreamServer) -> None:
    def twice(client: StreamClient, request: Any) -> None:
        client.reply(request, None, first=True)
        client.reply(request, None, first=False)

    worker = Worker(server, "actor", twice)
    assert [result(server.request("actor", "x")).metadata["first"] for _ in range(3)] == [True] * 3
    server.close()
    worker.join()


def test_codecs_of_a_worker_are_used_in_both_directions() -> None:
    server = StreamServer(
        0, KEY, ["actor"], host="127.0.0.1", methods={"actor": "raw_compress"}, max_frame_bytes=1 << 16
    )
    worker = Worker(server, "actor", method="raw_compress")
    reply = result(server.request("actor", "x", NamedArray(a=np.zeros(1 << 20))))  # 8 MB that fit when compressed
    assert reply.data.a.shape == (1 << 20,)
    server.close()
    worker.join()


def test_methods_of_unknown_workers_are_refused() -> None:
    with pytest.raises(ValueError, match="of unknown workers: ref"):
        StreamServer(0, KEY, ["actor"], host="127.0.0.1", methods={"ref": "raw_bytes"})


SERVER = """
import os, sys
from determined_workflows.rlhf.task.streams import StreamServer
server = StreamServer(int(sys.argv[1]), b"k" * 32, ["actor"], host="127.0.0.1")
server.wait_for_workers(10)
sys.stdin.read()  # until its welcome has been read
os._exit(1)
"""


def test_a_server_that_dies_is_said_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_client, "GRACE_SECONDS", 0.1)
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stdin=subprocess.PIPE)
    client = StreamClient("127.0.0.1", port, KEY, "actor", seconds=10)
    assert process.stdin is not None
    process.stdin.close()
    with pytest.raises(ConnectionError, match=f"master worker at 127.0.0.1:{port} is gone"):
        client.receive()
    client.close()
    assert process.wait(5) == 1
