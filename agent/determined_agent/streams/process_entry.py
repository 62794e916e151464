"""Enters tasks that are processes of this machine."""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import signal
import struct
import sys
import termios
from typing import Any

from determined.link.messages import Execution
from determined.link.run_folder import RunFolder
from determined.streams.records import Kind, Record
from determined_agent.drivers.process import open_shim
from determined_agent.environments.source_roots import OWN, SOURCE_ROOTS
from determined_agent.streams.port_connection import assigned, connect_to
from determined_agent.streams.program import READ_BYTES, SHELLS, NotEntered, Program
from determined_agent.task_process import processes
from determined_launch import process_table
from determined_launch.environment import CONTAINER_ID
from determined_launch.process_table import Process
from determined_launch.regular_files import read_regular

# Run by its path; the agent never imports it.
_ENTER_TASK = OWN / "determined_agent" / "task_process" / "enter_task.py"
_ROOTS = os.pathsep.join(SOURCE_ROOTS)
MAX_ORDER_BYTES = 64 << 20
MAX_STATUS_BYTES = 64 << 10
_END_SECONDS = 5.0


class ProcessEntry:
    """Runs programs by ``enter_task.py`` in the namespaces of a task."""

    async def execute(self, folder: RunFolder, execution: Execution) -> Program:
        order = await asyncio.to_thread(_order, folder, execution)
        order_out, order_in = os.pipe()
        status_out, status_in = os.pipe()
        argv = (sys.executable, "-I", "-S", str(_ENTER_TASK), str(order_out), str(status_in), _ROOTS)
        program: Program | None = None
        try:
            try:
                if execution.terminal is None:
                    program = await _with_pipes(argv, (order_out, status_in), status_out)
                else:
                    owner = order["identity"]
                    program = await _with_terminal(argv, (order_out, status_in), status_out, execution.terminal, owner)
            finally:
                os.close(order_out)
                os.close(status_in)
            await asyncio.to_thread(_write_all, order_in, json.dumps(order).encode())
            return program
        except BaseException as problem:
            if program is None:
                os.close(status_out)
            else:
                await program.close()
            if isinstance(problem, OSError):
                raise NotEntered(f"cannot start a program beside the task: {problem}") from problem
            raise
        finally:
            os.close(order_in)

    async def connect(self, folder: RunFolder, port: int) -> Program:
        process = await asyncio.to_thread(_task_process, folder)
        # Tasks share the ports of the machine: another one may have the port that this one has declared.
        return await connect_to(assigned(process_table.environment(process.pid), port))


def _order(folder: RunFolder, execution: Execution) -> dict[str, Any]:
    """Returns what ``enter_task.py`` needs. Blocking. Raises NotEntered."""
    process = _task_process(folder)
    try:
        order: dict[str, Any] = json.loads(read_regular(folder.order, MAX_ORDER_BYTES))
    except (OSError, ValueError) as problem:
        raise NotEntered(f"the agent cannot read how the task was started: {problem}") from problem
    environment = {**(process_table.environment(process.pid) or order["environment"]), **execution.environment}
    if execution.terminal_type:
        environment["TERM"] = execution.terminal_type
    return {
        "agent": os.getpid(),
        "argv": execution.argv,
        "shells": SHELLS,
        "environment": environment,
        "workdir": order["workdir"],
        "umask": order["umask"],
        "identity": order["identity"],
        "pid": process.pid,
        "started": process.started,
    }


def _task_process(folder: RunFolder) -> Process:
    """Returns the first process of the task, whose environment and namespaces are the task's. Raises NotEntered."""
    handle = open_shim(folder)
    if handle is None:
        raise NotEntered("the task has ended")
    pid, descriptor = handle
    try:
        for below in process_table.descendants(pid):
            process = process_table.find(below)
            is_tasks = process_table.environment(below).get(CONTAINER_ID) == folder.path.name
            if process is not None and is_tasks:
                return process
    finally:
        os.close(descriptor)
    raise NotEntered("the task has not started its program yet, or has ended")


class _Started:
    """What both kinds of programs share: the helper process, its end and its status."""

    def __init__(self, process: asyncio.subprocess.Process, status: int) -> None:
        self._process, self._status = process, status
        self._is_closed = False

    async def wait(self) -> dict[str, Any]:
        await self._process.wait()
        try:
            return dict(json.loads(os.read(self._status, MAX_STATUS_BYTES)))
        except (OSError, ValueError):
            return {"signal": int(signal.SIGKILL)}

    async def signal(self, number: int) -> None:
        if 0 < number < signal.NSIG:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _end(self) -> None:
        if self._process.returncode is None:
            pid = self._process.pid
            await asyncio.to_thread(
                processes.kill_all, lambda: set(process_table.descendants(pid)), patience=_END_SECONDS
            )
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await self._process.wait()
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
        os.close(self._status)


class _Piped(_Started):
    """A program without a terminal."""

    def __init__(self, process: asyncio.subprocess.Process, status: int) -> None:
        super().__init__(process, status)
        self._output: asyncio.Queue[Record | None] = asyncio.Queue(1)
        streams = ((process.stdout, Kind.OUTPUT), (process.stderr, Kind.ERROR_OUTPUT))
        self._reading = [asyncio.create_task(self._read(stream, kind)) for stream, kind in streams if stream]
        self._left = len(self._reading)

    async def _read(self, stream: asyncio.StreamReader, kind: Kind) -> None:
        while data := await stream.read(READ_BYTES):
            await self._output.put(Record(kind, data))
        await self._output.put(None)

    async def read(self) -> Record | None:
        while self._left:
            record = await self._output.get()
            if record is not None:
                return record
            self._left -= 1
        return None

    async def write(self, data: bytes) -> None:
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    async def end_input(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def resize(self, rows: int, columns: int) -> None:
        """Does nothing: there is no terminal."""

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for task in self._reading:
            task.cancel()
        await asyncio.gather(*self._reading, return_exceptions=True)
        await self._end()


class _OnTerminal(_Started):
    """A program on a terminal of its own."""

    def __init__(self, process: asyncio.subprocess.Process, status: int, terminal: int) -> None:
        super().__init__(process, status)
        self._terminal = terminal
        self._writing = asyncio.Lock()

    async def read(self) -> Record | None:
        while True:
            try:
                data = os.read(self._terminal, READ_BYTES)
            except BlockingIOError:
                await _ready(self._terminal, is_for_writing=False)
                continue
            except OSError as problem:
                if problem.errno != errno.EIO:
                    raise
                data = b""  # nobody has the other side open any more
            return Record(Kind.OUTPUT, data) if data else None

    async def write(self, data: bytes) -> None:
        async with self._writing:
            left = memoryview(data)
            while left and not self._is_closed:
                try:
                    left = left[os.write(self._terminal, left) :]
                except BlockingIOError:
                    await _ready(self._terminal, is_for_writing=True)
                except OSError:
                    return

    async def end_input(self) -> None:
        await self.write(b"\x04")

    async def resize(self, rows: int, columns: int) -> None:
        if not self._is_closed:
            _set_size(self._terminal, rows, columns)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        await self._end()
        os.close(self._terminal)


async def _with_pipes(argv: tuple[str, ...], passed: tuple[int, int], status: int) -> Program:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
        pass_fds=passed,
        start_new_session=True,
        limit=READ_BYTES,
        env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
    )
    return _Piped(process, status)


async def _with_terminal(
    argv: tuple[str, ...],
    passed: tuple[int, int],
    status: int,
    size: tuple[int, int],
    owner: dict[str, Any] | None,
) -> Program:
    ours, theirs = os.openpty()
    try:
        _set_size(ours, *size)
        os.set_blocking(ours, False)
        if owner is not None:
            os.fchown(theirs, owner["uid"], owner["gid"])
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            pass_fds=passed,
            start_new_session=True,
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        )
    except OSError:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return _OnTerminal(process, status, ours)


def _set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _write_all(pipe: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(pipe, left) :]


async def _ready(descriptor: int, *, is_for_writing: bool) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    add, remove = (loop.add_writer, loop.remove_writer) if is_for_writing else (loop.add_reader, loop.remove_reader)
    add(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        remove(descriptor)
