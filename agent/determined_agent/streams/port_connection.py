"""A connection to a port of a task."""

import asyncio
import contextlib
import ctypes
import os
import socket
from collections.abc import Mapping
from typing import Any

from determined.streams.records import Kind, Record
from determined_agent.hooks.proxy_ports import VARIABLE
from determined_agent.streams.program import READ_BYTES, NotEntered
from determined_agent.task_process.processes import libc

CONNECT_SECONDS = 10.0
MAX_PORT = 65535
_CLONE_NEWNET = 0x40000000
_HOSTS = ("127.0.0.1", "::1")


class PortConnection:
    """One TCP connection, as a program whose input and output are its bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._ended = asyncio.Event()

    async def read(self) -> Record | None:
        try:
            data = await self._reader.read(READ_BYTES)
        except OSError:
            data = b""
        if not data:
            self._ended.set()
            return None
        return Record(Kind.OUTPUT, data)

    async def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError, RuntimeError):  # the second: after end_input
            self._writer.write(data)
            await self._writer.drain()

    async def end_input(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write_eof()

    async def resize(self, rows: int, columns: int) -> None:
        """Does nothing: a connection has no size."""

    async def signal(self, number: int) -> None:
        """Does nothing: a connection takes no signals."""

    async def wait(self) -> dict[str, Any]:
        await self._ended.wait()
        return {"code": 0}

    async def close(self) -> None:
        self._ended.set()
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def assigned(environment: Mapping[str, str], port: int) -> int:
    """Returns the port on which a task listens in place of one that it has declared.

    >>> assigned({"DET_PROXY_PORT_8265": "41235"}, 8265), assigned({}, 8265)
    (41235, 8265)
    """
    value = environment.get(f"{VARIABLE}{port}", "")
    return int(value) if value.isdecimal() and 0 < int(value) <= MAX_PORT else port


async def connect_to(port: int, *, pid: int | None = None, host: str = "") -> PortConnection:
    """Connects to a port. Raises NotEntered.

    Args:
        port: its number.
        pid: a process whose network the port belongs to; None for the agent's own network.
        host: an address to try where the agent may not enter that network; empty if there is none.
    """
    try:
        connected = await asyncio.to_thread(_connect, port, pid, host)
        reader, writer = await asyncio.open_connection(sock=connected, limit=READ_BYTES)
    except OSError as problem:
        reason = "nobody listens there" if isinstance(problem, ConnectionRefusedError) else str(problem)
        raise NotEntered(f"cannot connect to port {port} of the task: {reason}") from problem
    return PortConnection(reader, writer)


def _connect(port: int, pid: int | None, host: str) -> socket.socket:
    """Blocking; runs in a thread of its own network for a moment."""
    if pid is None:
        return _connect_here(port, _HOSTS)
    try:
        with _network_of(pid):
            return _connect_here(port, _HOSTS)
    except PermissionError:
        if not host:
            raise
        return _connect_here(port, (host,))


def _connect_here(port: int, hosts: tuple[str, ...]) -> socket.socket:
    problem: OSError | None = None
    for host in hosts:
        try:
            connected = socket.create_connection((host, port), CONNECT_SECONDS)
            connected.setblocking(False)
            return connected
        except OSError as error:
            # The refusal says more than that this machine has no IPv6.
            problem = problem or error
    assert problem is not None
    raise problem


@contextlib.contextmanager
def _network_of(pid: int):  # type: ignore[no-untyped-def]
    """Moves this thread, and no other, into the network of a process. Raises PermissionError."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _enter(other)
        finally:
            os.close(other)
        try:
            yield
        finally:
            _enter(own)
    finally:
        os.close(own)


def _enter(network: int) -> None:
    if libc.setns(network, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
