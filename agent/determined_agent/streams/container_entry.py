"""Enters tasks that run in containers, by the engine's own exec, which keeps user, limits and capabilities."""

import asyncio
import contextlib
import json
import os
import signal
import struct
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from determined.link.messages import Execution
from determined.link.run_folder import RunFolder
from determined.streams.records import Kind, Record
from determined_agent.drivers.docker import MAX_ORDER_BYTES, name_of
from determined_agent.drivers.engine import Engine, EngineError
from determined_agent.streams.port_connection import assigned, connect_to
from determined_agent.streams.program import READ_BYTES, NotEntered, Program
from determined_launch import process_table
from determined_launch.regular_files import read_regular

_SHELL = ("sh", "-c", 'exec "$(command -v "${SHELL:-bash}" || command -v bash || command -v sh)"')
_HEADER = struct.Struct(">BxxxL")
"""Before each piece of output without a terminal: 1 or 2 for the stream, and the size."""
_ERRORS = 2
MAX_HEAD_BYTES = 64 << 10
START_SECONDS = 30.0


class ContainerEntry:
    """Runs programs in the containers of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def execute(self, folder: RunFolder, execution: Execution) -> Program:
        order = await asyncio.to_thread(_order, folder)
        environment = {**order["environment"], **execution.environment}
        if execution.terminal_type:
            environment["TERM"] = execution.terminal_type
        has_terminal = execution.terminal is not None
        argv = list(execution.argv or _SHELL)
        try:
            created = await self._engine.call(
                lambda api: api.exec_create(
                    name_of(folder),
                    argv,
                    stdin=True,
                    tty=has_terminal,
                    environment=environment,
                    workdir=order["workdir"],
                )
            )
            exec_id = str(created["Id"])
            async with asyncio.timeout(START_SECONDS):
                reader, writer = await _start(self._engine.url, exec_id, has_terminal=has_terminal)
        except (EngineError, OSError, TimeoutError, asyncio.IncompleteReadError, ValueError) as problem:
            raise NotEntered(f"cannot run {argv[0]!r} in the container: {problem}") from problem
        program = _InContainer(self._engine, exec_id, reader, writer, has_terminal=has_terminal)
        if execution.terminal is not None:
            await program.resize(*execution.terminal)
        return program

    async def connect(self, folder: RunFolder, port: int) -> Program:
        try:
            facts = await self._engine.call(lambda api: api.inspect_container(name_of(folder)))
        except EngineError as problem:
            raise NotEntered(f"cannot find the container: {problem.message}") from problem
        if facts["HostConfig"]["NetworkMode"] == "host":
            order = await asyncio.to_thread(_order, folder)
            return await connect_to(assigned(order["environment"], port))
        networks = facts["NetworkSettings"].get("Networks") or {}
        addresses = [each.get("IPAddress") for each in networks.values()]
        return await connect_to(port, pid=int(facts["State"]["Pid"]), host=next(filter(None, addresses), ""))


class _InContainer:
    """A program that the engine runs."""

    def __init__(
        self,
        engine: Engine,
        exec_id: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        has_terminal: bool,
    ) -> None:
        self._engine, self._id = engine, exec_id
        self._reader, self._writer = reader, writer
        self._has_terminal = has_terminal
        self._kind, self._left = Kind.OUTPUT, 0
        """Stream and missing bytes of the piece of output that is being read."""
        self._ended = asyncio.Event()
        self._is_closed = False

    async def read(self) -> Record | None:
        try:
            if not self._has_terminal and not self._left:
                stream, self._left = _HEADER.unpack(await self._reader.readexactly(_HEADER.size))
                self._kind = Kind.ERROR_OUTPUT if stream == _ERRORS else Kind.OUTPUT
            wanted = READ_BYTES if self._has_terminal else min(self._left, READ_BYTES)
            data = await self._reader.read(wanted)
        except (OSError, asyncio.IncompleteReadError):
            data = b""
        if not data:
            self._ended.set()
            return None
        self._left -= 0 if self._has_terminal else len(data)
        return Record(self._kind, data)

    async def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self._writer.write(data)
            await self._writer.drain()

    async def end_input(self) -> None:
        if self._has_terminal:
            await self.write(b"\x04")
            return
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write_eof()

    async def resize(self, rows: int, columns: int) -> None:
        with contextlib.suppress(EngineError):  # it has just ended
            await self._engine.call(lambda api: api.exec_resize(self._id, height=rows, width=columns))

    async def signal(self, number: int) -> None:
        if 0 < number < signal.NSIG:
            await self._kill(lambda pid: {pid}, number)

    async def wait(self) -> dict[str, Any]:
        await self._ended.wait()
        try:
            code = (await self._engine.call(lambda api: api.exec_inspect(self._id)))["ExitCode"]
        except EngineError as problem:
            return {"error": f"the container engine does not say how it ended: {problem.message}"}
        return {"signal": int(signal.SIGKILL)} if code is None else {"code": int(code)}

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        self._ended.set()
        await self._kill(lambda pid: {pid, *process_table.descendants(pid)}, signal.SIGKILL)
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _kill(self, those: Callable[[int], set[int]], number: int) -> None:
        """Sends a signal to the program, and to ``those`` that it is asked for; nothing if it has ended."""
        with contextlib.suppress(EngineError):
            facts = await self._engine.call(lambda api: api.exec_inspect(self._id))
            if facts["Running"] and facts["Pid"]:
                try:
                    for pid in those(int(facts["Pid"])):
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(pid, number)
                except PermissionError:
                    await self._kill_inside(facts["ContainerID"], those(int(facts["Pid"])), number)

    async def _kill_inside(self, container: str, pids: set[int], number: int) -> None:
        """The same by a program in the container, for an agent that is not root."""
        names = [name for pid in pids if (name := _pid_inside(pid))]
        argv = ["sh", "-c", f"kill -{int(number)} {' '.join(names)}"]
        created = await self._engine.call(lambda api: api.exec_create(container, argv))
        await self._engine.call(lambda api: api.exec_start(created["Id"], detach=True))


async def _start(url: str, exec_id: str, *, has_terminal: bool) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Starts a program and returns the connection that is its input and output from then on.

    Not by the package, whose own buffer may keep the first bytes. Raises OSError and ValueError.
    """
    place = urlsplit(url)
    if place.scheme == "unix":
        reader, writer = await asyncio.open_unix_connection(place.path, limit=MAX_HEAD_BYTES)
    else:
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=MAX_HEAD_BYTES)
    body = json.dumps({"Detach": False, "Tty": has_terminal}).encode()
    head = (
        f"POST /exec/{exec_id}/start HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        writer.write(head.encode() + body)
        await writer.drain()
        answer = (await reader.readuntil(b"\r\n\r\n")).decode(errors="replace")
        status = answer.split(" ", 2)[1]
        if status not in ("101", "200"):
            text = (await reader.read(READ_BYTES)).decode(errors="replace").strip()
            raise ValueError(text or f"the engine answered {status}")
    except BaseException:
        writer.close()
        raise
    return reader, writer


def _order(folder: RunFolder) -> dict[str, Any]:
    """Blocking. Raises NotEntered."""
    try:
        return dict(json.loads(read_regular(folder.order, MAX_ORDER_BYTES)))
    except (OSError, ValueError) as problem:
        raise NotEntered(f"the agent cannot read how the task was started: {problem}") from problem


def _pid_inside(pid: int) -> str:
    """Returns the pid by which a process is known in its container, or an empty text."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            line = next((line for line in file if line.startswith("NSpid:")), "")
    except OSError:
        return ""
    return line.split()[-1] if line else ""
