"""Fork servers of agents with torch in them, forked from one process that has imported it.

Importing torch is most of what the trainings of the tests compute. A trial whose environment has ``WARM_TORCH`` and
whose entrypoint is a trial class continues in the process that was forked for its start-up, instead of becoming a new
Python. It has the command line, environment, signals and output of the new Python, and the packages of the tests'
Python. Every other task starts as usual. ``forked_programs.py`` starts this program and lets agents use it.
"""

import atexit
import ctypes
import gc
import importlib
import io
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

WARM = "WARM_TORCH"
"""A variable of trials, and of agents, for which it is the address of this program."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Torch reads them when it is imported."""
ROOM = {"ROOM": " " * 100_000}
"""The environment that ``/proc`` shows of a trial is written over it."""
HARNESS = "determined.exec.harness"
FORK_SERVER = "determined_agent.task_process.fork_server"
_ENV_START, _ENV_END = 47, 48
"""Places in ``/proc/PID/stat`` after the name of the program; see proc(5)."""

execute = os.execvpe


def main(address: str) -> None:
    """Forks a fork server for each connection, until standard input ends. Answers with its pid."""
    packages = list(sys.path)
    for module in ("determined.pytorch", HARNESS, FORK_SERVER):
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{address}")
        listener.listen()
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([0, listener], [], [])
            if 0 in ready:
                return
            agent, _ = listener.accept()
            with agent:
                _, (requests,), _, _ = socket.recv_fds(agent, 64, 1)
                pid = os.fork()
                if not pid:
                    os._exit(serve(requests, packages))
                os.close(requests)
                agent.send(str(pid).encode())


def serve(requests: int, packages: list[str]) -> int:
    """Is the fork server of one agent."""

    def continue_or_execute(file: str, argv: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
        if list(argv[1:3]) == ["-m", HARNESS] and environ.get(WARM) and ONE_THREAD.items() <= environ.items():
            become_trial(argv, environ, packages)
            run(importlib.import_module(HARNESS).main)
        execute(file, argv, environ)

    os.setsid()
    os.dup2(requests, 0)
    os.closerange(3, 64)
    os.execvpe = continue_or_execute  # type: ignore[assignment]
    return int(importlib.import_module(FORK_SERVER).main())


def become_trial(argv: Sequence[str], environ: Mapping[str, str], packages: Sequence[str]) -> None:
    """Gives this process what a new Python with this command line and environment has."""
    from determined_agent.task_process import processes

    os.environ.clear()
    os.environ.update(environ)
    processes.replace_command_line(argv)
    replace_shown_environment(environ)
    sys.executable, sys.argv = argv[0], [HARNESS, *argv[3:]]
    sys.path[:] = [os.getcwd(), *environ.get("PYTHONPATH", "").split(os.pathsep), *packages]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", write_through=True)


def replace_shown_environment(environ: Mapping[str, str]) -> None:
    """Replaces the environment in ``/proc/PID/environ``, by which processes of an allocation are found."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    text = b"".join(f"{name}={value}".encode() + b"\0" for name, value in environ.items())
    assert len(text) < end - start, "the environment of the trial is too long for the server's"
    ctypes.memmove(start, text.ljust(end - start, b"\0"), end - start)


def run(program: Callable[[], int]) -> NoReturn:
    """Runs the program and ends this process as Python ends: with its threads, its functions ``atexit``, its output."""
    code = 1
    try:
        code = program()
    except SystemExit as request:
        code = request.code if isinstance(request.code, int) else int(request.code is not None)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[2])
