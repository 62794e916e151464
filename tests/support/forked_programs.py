"""Masters and agents that are forked from a process that has already imported their modules.

Most of what a start of a master or an agent computes are its imports, and the tests start hundreds. A forked program is
still a whole process: it has its own session, command line, environment, folder and log. Tests of ``det up`` and of the
documentation start new Pythons. Run as a program with the name of a package, this module is such a process.
"""

import atexit
import functools
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from tests.support import warm_fork_server
from tests.support.compiler import python_path

MAX_MESSAGE = 1 << 17
IMPORTED_LATER = ("determined_master.server.run",)
"""Modules that the program of a package imports once it knows that it is to serve."""
SPACE = " " * 2048
"""Room for the command line that ``ps`` shows of a program."""


class ForkServer:
    """A process that has imported a package, and the socket to it."""

    def __init__(self, package: str) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [sys.executable, "-P", "-m", __name__, SPACE, package]
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with theirs:
            self._process = subprocess.Popen(argv, stdin=theirs, start_new_session=True, env=environ)
        self._codes: dict[int, int] = {}
        self._lock = threading.Lock()
        atexit.register(self.close)

    def fork(self, argv: list[str], log: Path, environment: dict[str, str]) -> "Forked":
        log.touch()
        order = {"argv": argv, "log": str(log), "environment": environment}
        with self._lock:
            self._socket.send(json.dumps(order).encode())
            while "code" in (answer := self._receive()):
                pass
        return Forked(self, answer["pid"])

    def code_of(self, pid: int, timeout: float | None) -> int | None:
        """Returns the exit code of a program, or None if it still runs after ``timeout`` seconds."""
        until = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while pid not in self._codes:
                seconds = None if until is None else max(0.0, until - time.monotonic())
                if not select.select([self._socket], [], [], seconds)[0]:
                    return None
                self._receive()
            return self._codes[pid]

    def close(self) -> None:
        self._socket.close()
        self._process.wait()

    def _receive(self) -> dict[str, int]:
        message: dict[str, int] = json.loads(self._socket.recv(MAX_MESSAGE))
        if "code" in message:
            self._codes[message["pid"]] = message["code"]
        return message


class Forked:
    """A program of a fork server, with the methods of ``subprocess.Popen`` that tests use."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self._server = server

    def poll(self) -> int | None:
        return self._server.code_of(self.pid, 0)

    def wait(self, timeout: float | None = None) -> int:
        code = self._server.code_of(self.pid, timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"pid {self.pid}", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@functools.cache
def _server_of(package: str) -> ForkServer:
    return ForkServer(package)


def forked(argv: list[str], log: Path, environment: dict[str, str]) -> Forked:
    """Starts the program ``… -m PACKAGE arguments…``."""
    return _server_of(argv[argv.index("-m") + 1]).fork(argv, log, environment)


@functools.cache
def warm_torch() -> str:
    """Starts ``warm_fork_server.py`` and returns its address."""
    address = f"detent-tests-{os.getpid()}"
    argv = [sys.executable, "-P", warm_fork_server.__file__ or "", SPACE, address]
    environ = os.environ | warm_fork_server.ONE_THREAD | warm_fork_server.ROOM | {"PYTHONPATH": python_path()}
    process = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ, cwd="/", start_new_session=True
    )
    atexit.register(process.communicate)  # the end of its input ends it
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return address


def main(package: str) -> None:
    program = importlib.import_module(f"{package}.__main__")
    for module in IMPORTED_LATER:
        if module.startswith(package):
            importlib.import_module(module)
    requests = socket.socket(fileno=os.dup(0))
    ended, end = os.pipe2(os.O_NONBLOCK)
    signal.set_wakeup_fd(end)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    while True:
        ready, _, _ = select.select([requests, ended], [], [])
        if ended in ready:
            os.read(ended, 4096)
            report_ends(requests)
        if requests in ready:
            order = requests.recv(MAX_MESSAGE)
            if not order:
                return
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                for descriptor in (requests.detach(), ended, end):
                    os.close(descriptor)
                os._exit(run(program, json.loads(order)))
            requests.send(json.dumps({"pid": pid}).encode())


def report_ends(requests: socket.socket) -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        requests.send(json.dumps({"pid": pid, "code": os.waitstatus_to_exitcode(status)}).encode())


def run(program: Any, order: dict[str, Any]) -> int:
    """Runs the program in this process as a Python of its own would; returns its exit code."""
    from determined_agent.task_process import processes

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(Path(order["log"]).parent)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for file, number in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(file, number)
    os.closerange(3, 64)
    os.environ.clear()
    os.environ.update(order["environment"])
    argv = order["argv"]
    processes.replace_command_line(argv)
    sys.argv = argv[argv.index("-m") + 1 :]
    if address := os.environ.get(warm_fork_server.WARM):
        use_warm_torch(address)
    try:
        return int(program.main())
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def use_warm_torch(address: str) -> None:
    """Lets this agent use a fork server of ``warm_fork_server.py`` instead of starting its own."""
    from determined_agent.drivers.shim_forks import ShimForks

    def begin(forks: Any) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
            server.connect(f"\0{address}")
            socket.send_fds(server, [b"x"], [theirs.fileno()])
            forks._pid = int(server.recv(64))  # noqa: SLF001
        ours.setblocking(False)
        forks._socket = ours  # noqa: SLF001

    ShimForks._begin = begin  # type: ignore[method-assign]  # noqa: SLF001


if __name__ == "__main__":
    main(sys.argv[2])
