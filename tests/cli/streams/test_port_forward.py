"""Connections that ``port_forward`` passes on: how they end."""

import asyncio
import queue
import signal
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from determined.client.session import Session
from determined.streams.windowed import WindowedStream
from determined_cli.streams import port_forward

SECONDS = 20.0


class FakeClient:
    """A session in a task that says nothing, and ends if it is cancelled."""

    opened: "queue.SimpleQueue[FakeClient]"

    def __init__(self, _session: Session, _task_id: str, _body: dict[str, Any]) -> None:
        self.stream = WindowedStream()
        self.has_ended = threading.Event()

    async def run(self) -> None:
        self.opened.put(self)
        try:
            await asyncio.Event().wait()
        finally:
            self.has_ended.set()


@pytest.fixture(autouse=True)
def _fake_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeClient, "opened", queue.SimpleQueue(), raising=False)
    monkeypatch.setattr(port_forward, "StreamClient", FakeClient)


class Forwarding:
    """``forward`` in the main thread, which Ctrl-C reaches, and ``act`` in another one."""

    def __init__(self, act: Callable[[socket.socket, FakeClient], None]) -> None:
        self._act = act
        self._has_ended = threading.Event()
        self._port: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.interrupts = 0

    def run(self) -> None:
        """Returns after Ctrl-C, which is pressed again if it has no effect."""
        with self._acting():
            port_forward.forward(Session("http://127.0.0.1:9"), "t", [(0, 80)], announce=self._announce)
            self._has_ended.set()

    def _announce(self, line: str) -> None:
        self._port.put(int(line.split()[1].rpartition(":")[2]))

    @contextmanager
    def _acting(self) -> Iterator[None]:
        thread = threading.Thread(target=self._connect)
        thread.start()
        try:
            yield
        finally:
            thread.join()

    def _connect(self) -> None:
        try:
            with socket.create_connection(("127.0.0.1", self._port.get(timeout=SECONDS))) as connection:
                self._act(connection, FakeClient.opened.get(timeout=SECONDS))
                self._interrupt()
        finally:
            if not self._has_ended.is_set():
                self._interrupt()

    def _interrupt(self) -> None:
        self.interrupts += 1
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        self._has_ended.wait(SECONDS)


def test_ctrl_c_ends_it_without_a_word_while_a_connection_is_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def wait_closed(_server: asyncio.Server) -> None:
        """Waits for the connections of a server, as in Python 3.12.1 and later."""
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio.Server, "wait_closed", wait_closed)
    clients: list[FakeClient] = []
    forwarding = Forwarding(lambda _connection, client: clients.append(client))
    forwarding.run()
    assert forwarding.interrupts == 1
    assert clients[0].has_ended.is_set()
    assert caplog.text == ""


def test_the_session_of_a_connection_that_the_local_program_resets_ends() -> None:
    ended: list[bool] = []

    def reset(connection: socket.socket, client: FakeClient) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        ended.append(client.has_ended.wait(SECONDS))

    Forwarding(reset).run()
    assert ended == [True]


def test_the_session_of_a_connection_whose_program_sends_no_more_goes_on() -> None:
    ended: list[bool] = []

    def shut_down(connection: socket.socket, client: FakeClient) -> None:
        connection.shutdown(socket.SHUT_WR)
        ended.append(client.has_ended.wait(0.2))

    Forwarding(shut_down).run()
    assert ended == [False]
