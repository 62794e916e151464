"""The process driver: each container is a child process under a shim, for machines without a container engine."""

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import sys
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from determined.link.run_folder import RunFolder
from determined_agent.drivers.driver import PRIVATE_UMASK, ContainerLaunch, NotStarted, ProcessOptions, RunEnd
from determined_agent.drivers.exit_record import MAX_BYTES, read_end, write_lost
from determined_agent.drivers.shim_forks import ShimForks
from determined_agent.environments.source_roots import OWN, SOURCE_ROOTS
from determined_agent.task_process import processes
from determined_launch import process_table
from determined_launch.atomic_file import write_atomic
from determined_launch.environment import CONTAINER_ID
from determined_launch.regular_files import read_regular

# Run by its path; the agent never imports it.
_SHIM = OWN / "determined_agent" / "task_process" / "shim.py"
FORK_SECONDS = 15.0
"""A fork server that has not started a shim after this time is ended."""
_ROOTS = os.pathsep.join(SOURCE_ROOTS)


class ProcessDriver:
    """Starts a shim for each container and reads the files that the shim writes."""

    def __init__(self, options: ProcessOptions | None = None, forks: ShimForks | None = None) -> None:
        """Creates the driver. Without ``forks``, and where they fail, each shim is a new Python."""
        self._options = options or ProcessOptions()
        self._forks = forks

    async def start(self, launch: ContainerLaunch) -> None:
        folder = launch.folder
        if launch.mounts:
            folder.root.mkdir(mode=0o700, exist_ok=True)
        write_atomic(folder.order, json.dumps(self._order(launch)))
        has_started = await self._start_shim(folder)
        if not has_started:
            ended = await self.wait(folder)
            if ended.kind == "failed_to_start":
                raise NotStarted(ended.message)

    async def wait(self, folder: RunFolder) -> RunEnd:
        while True:
            handle = open_shim(folder)
            if handle is not None:
                pid, descriptor = handle
                try:
                    if folder.stop.exists():  # requested before the shim could receive a signal
                        _end(descriptor)
                    await _readable(descriptor)
                finally:
                    os.close(descriptor)
                _collect(pid)
            elif await asyncio.to_thread(_settle, folder):
                return read_end(folder)
            else:
                await asyncio.sleep(
                    0.01
                )  # polls: between its lock and its pid file a shim cannot be waited for otherwise

    def runtime_id(self, _folder: RunFolder, /) -> str:
        return ""

    def stop(self, folder: RunFolder) -> None:
        handle = open_shim(folder)
        if handle is not None:
            _end(handle[1])
            os.close(handle[1])

    async def _start_shim(self, folder: RunFolder) -> bool:
        """Starts a shim in a session of its own. Returns True once it has reported that the task runs, False if it has
        ended before."""
        forks = self._forks
        if forks is not None:
            with _Report() as report:
                if forks.start(folder, report.theirs):
                    if await report.comes(FORK_SECONDS):
                        return report.has_started()
                    forks.restart()
                    if has_shim(folder):
                        return True
        # A shim that was forked all the same holds the lock, so that this one does nothing.
        with _Report() as report:
            _spawn(folder, report.theirs)
            await report.comes()
            return report.has_started()

    def _order(self, launch: ContainerLaunch) -> dict[str, Any]:
        folder, limits = launch.folder, self._options.limits
        namespace = {
            "pids": self._options.pids,
            "mounts": [mount._asdict() for mount in launch.mounts],
            "root": str(folder.root),
            "reachable": [str(path) for path in launch.reachable],
        }
        identity = launch.identity
        return {
            "format": 1,
            "argv": list(launch.argv),
            "program": launch.program if identity is None else "",
            "environment": {**launch.environment, CONTAINER_ID: folder.path.name},
            "workdir": str(launch.workdir),
            "umask": self._options.umask if identity is None else self._options.umask | PRIVATE_UMASK,
            "identity": None if identity is None else identity._asdict(),
            "namespace": namespace,
            "output": str(folder.output),
            "wake": str(folder.wake),
            "exit": str(folder.exit),
            "end_request": str(folder.end_request),
            "lock": str(folder.lock),
            "pid": str(folder.pid),
            "segment_bytes": limits.segment_bytes,
            "output_limit": limits.unsent_bytes,
            "line_limit": limits.line_bytes,
        }


class _Report:
    """A pipe in which a shim reports that its task runs; it ends without a report if the task does not."""

    def __enter__(self) -> "_Report":
        self._ours, self.theirs = os.pipe()
        self._is_open = True
        return self

    def __exit__(self, *_: object) -> None:
        self._close_theirs()
        os.close(self._ours)

    async def comes(self, seconds: float | None = None) -> bool:
        """Waits for the report or the end of the shim, which has the other end. Returns False after ``seconds``."""
        self._close_theirs()
        return await _readable(self._ours, seconds)

    def has_started(self) -> bool:
        return bool(os.read(self._ours, 64))

    def _close_theirs(self) -> None:
        if self._is_open:
            self._is_open = False
            os.close(self.theirs)


def has_shim(folder: RunFolder) -> bool:
    """Returns True while the container's shim lives."""
    handle = open_shim(folder)
    if handle is not None:
        os.close(handle[1])
    return handle is not None


def _spawn(folder: RunFolder, report: int) -> None:
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-I", "-S", str(_SHIM), str(folder.order), _ROOTS],
        {"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, report, 1),
            (os.POSIX_SPAWN_OPEN, 2, str(folder.shim_log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        ],
        setsid=True,
        setsigmask=[],
        setsigdef=[signal.SIGPIPE],
    )


def _collect(pid: int) -> None:
    """Collects the status of a shim that this agent started; an adopted shim is no child of it."""
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def open_shim(folder: RunFolder) -> tuple[int, int] | None:
    """Returns pid and descriptor of the living shim."""
    try:
        noted = json.loads(read_regular(folder.pid, MAX_BYTES))
        pid, started = int(noted["pid"]), noted["started"]
        descriptor = os.pidfd_open(pid)
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    process = process_table.find(pid)
    if process is not None and process.started == started and not _has_ended(descriptor):
        return pid, descriptor
    os.close(descriptor)
    return None


def _end(shim: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(shim, signal.SIGTERM)


def _has_ended(descriptor: int) -> bool:
    return bool(wait([descriptor], 0))


async def _readable(descriptor: int, seconds: float | None = None) -> bool:
    """Waits until the descriptor can be read. Returns False if it cannot within ``seconds``."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        async with asyncio.timeout(seconds):
            await ready.wait()
        return True
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(descriptor)


def _settle(folder: RunFolder) -> bool:
    """Ends the processes that a dead shim left, and records the end. Returns False if a shim is just starting."""
    lock = _open_lock(folder.lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not folder.exit.exists():  # a shim writes it when it has ended all of them
            processes.kill_all(lambda: processes.marked(CONTAINER_ID, folder.path.name))
        # Written under the lock: a shim that starts later finds it and does nothing.
        write_lost(folder)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


def _open_lock(path: Path) -> int:
    """Opens the lock of a shim; replaces a link, through which a task would have a file made elsewhere."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    if path.is_symlink():
        path.unlink(missing_ok=True)
    return os.open(path, flags, 0o600)
