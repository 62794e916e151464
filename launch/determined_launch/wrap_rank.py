"""Runs a worker, adds the prefix ``[rank=N] `` to each line of its output and records how it ended.

``python3 -m determined_launch.wrap_rank RANK_VARIABLE[,OTHER…] -- program args…``
"""

import os
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Protocol

from determined_launch import (
    environment,
    exit_records,
    out_of_memory,
    pause_signal,
    process,
    stack_dumps,
    step_counter,
    wandb_run,
    worker_environment,
)
from determined_launch.lines import Prefixer
from determined_launch.tracebacks import TracebackReader

KEPT_LINES = 20
MAX_KEPT_BYTES = 4096
"""Maximum length of one of these lines; the agent refuses records that are too large."""
LAST_WORDS_SECONDS = 0.2
DRAIN_SECONDS = 2.0  # a grandchild may hold the pipe open after the worker has ended


class LastLines:
    """The end of a worker's output, of both streams in the order of arrival."""

    def __init__(self, rank: int) -> None:
        self.prefix = Prefixer(rank).prefix.decode()
        self._start = len(self.prefix)
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)
        self.stderr = ""
        """The last line on standard error that is not blank."""
        self.traceback = TracebackReader()

    def add(self, lines: Sequence[bytes]) -> None:
        """Keeps the last of these lines."""
        self.lines.extend(_kept(line) for line in lines[-KEPT_LINES:])

    def add_stderr(self, lines: Sequence[bytes]) -> None:
        """Like ``add``, for lines on standard error."""
        self.add(lines)
        self.traceback.feed(_kept(line[self._start :]) for line in lines)
        written = next((line for line in reversed(lines) if line[self._start :].strip()), None)
        if written is not None:
            self.stderr = _kept(written)


def find_rank(names: str, environ: Mapping[str, str]) -> int:
    """Returns the number itself, or the value of the first set variable of a comma list; 0 if none is set."""
    if names.isdigit():
        return int(names)
    return next((int(environ[name]) for name in names.split(",") if environ.get(name)), 0)


class Worker(Protocol):
    """A started worker, whose output arrives in two pipes."""

    stdout: Any
    stderr: Any

    def wait(self) -> int:
        """Returns the status as ``subprocess`` does."""
        ...

    def send_signal(self, number: int, /) -> None:
        """Sends a signal if the worker still runs."""
        ...


def _start(words: Sequence[str], environ: Mapping[str, str]) -> Worker:
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environ)


def main(
    argv: Sequence[str] | None = None, *, start: Callable[[Sequence[str], Mapping[str, str]], Worker] = _start
) -> int:
    """Runs the worker and returns its exit code. ``start`` starts it with an environment."""
    words = list(sys.argv[1:] if argv is None else argv)
    environ = environment.current()
    if words[:1] == ["--kept"]:
        environ, words = worker_environment.restore(words[1], environ), words[2:]
    if len(words) < 3 or words[1] != "--":
        print("usage: wrap_rank RANK_VARIABLE -- program args…", file=sys.stderr)
        return 2
    words = [*words[:2], *worker_environment.with_own_python(words[2:], sys.executable)]
    rank = find_rank(words[0], environ)
    folder = exit_records.folder(environ)
    exit_records.remove(folder, rank)
    worker = worker_variables(environ, rank)
    kills = out_of_memory.KernelKills()
    last = LastLines(rank)
    with process.SignalForwarder() as signals:
        try:
            child = start(words[2:], worker)
        except OSError as error:
            code = process.start_failure(words[2:], error)
            last.add_stderr([f"{last.prefix}cannot start {words[2]!r}: {error.strerror}".encode()])
            exit_records.write(folder, _record(environ, rank, code, last, kills, time.time()))
            return code
        signals.send_to(child.send_signal)
        keeper = stack_dumps.DumpCollector(worker.get(environment.STEP_FILE))
        pumps = _start_pumps(child, rank, last, keeper)
        status = _counted(child.wait(), environ, rank)
        ended = time.time()
        # recorded before the rest of the output arrives, so that the layer sees a dead worker immediately
        for patience in (LAST_WORDS_SECONDS, DRAIN_SECONDS):
            _join(pumps, patience)
            exit_records.write(folder, _record(environ, rank, status, last, kills, ended))
    if environment.STEP_FILE not in environ:
        step_counter.remove(worker.get(environment.STEP_FILE))
    return process.exit_code(status)


def _counted(status: int, environ: Mapping[str, str], rank: int) -> int:
    """Returns the status that counts for a worker that ended with ``status``."""
    if status and pause_signal.is_sent(environ):
        # a failure would make the launcher end the ranks that still save
        print(f"[rank={rank}] ended with code {process.exit_code(status)} after the pause signal", flush=True)
        return 0
    if os.path.exists(environ.get(environment.END_MARK, "")):
        return 0  # a process of a daemon role, which its launcher ended after the other roles
    return status


def worker_variables(environ: Mapping[str, str], rank: int) -> dict[str, str]:
    """Returns the worker's environment: the launcher's variables, its own devices, and its place in nested layers."""
    own = environ if rank == 0 else wandb_run.without(environ)
    worker = {name: value for name, value in own.items() if name != environment.CONTAINER_DEVICES}
    devices = environ.get(environment.CONTAINER_DEVICES)
    if devices is not None:
        worker[environment.VISIBLE_DEVICES] = _devices(devices, environ.get(environment.VISIBLE_DEVICES, ""))
    # steps of a nested layer count for the outer worker
    if environ.get(environment.HANG_TIMEOUT) and environment.STEP_FILE not in environ:
        path = step_counter.make(exit_records.place(environ, "steps"), rank)
        if path is not None:
            worker[environment.STEP_FILE] = str(path)
    worker[environment.WORKER_OF] = os.path.join(environ.get(environment.WORKER_OF, ""), f"rank-{rank}")
    return worker


def _devices(containers: str, numbers: str) -> str:
    """Maps a launcher's device numbers, which begin at 0, to the container's own devices."""
    own = containers.split(",")
    chosen = [own[int(number)] for number in numbers.split(",") if number.isdigit() and int(number) < len(own)]
    return ",".join(chosen) if chosen else containers


def _start_pumps(
    child: Worker, rank: int, last: LastLines, keeper: stack_dumps.DumpCollector
) -> list[threading.Thread]:
    pumps = [
        threading.Thread(target=_pump, args=(source, target, Prefixer(rank), keep, keeper), daemon=True)
        for source, target, keep in (
            (child.stdout, sys.stdout.buffer, last.add),
            (child.stderr, sys.stderr.buffer, last.add_stderr),
        )
    ]
    for pump in pumps:
        pump.start()
    return pumps


def _pump(
    source: BinaryIO,
    target: BinaryIO,
    prefixer: Prefixer,
    keep: Callable[[Sequence[bytes]], None],
    keeper: stack_dumps.DumpCollector,
) -> None:
    number = source.fileno()
    while True:
        data = os.read(number, 65536)
        lines = prefixer.feed(data) if data else prefixer.close()
        if lines:
            target.write(b"".join(lines))
            target.flush()
            keeper.feed(lines, len(prefixer.prefix))
            keep(lines)
        if not data:
            return


def _kept(line: bytes) -> str:
    return line[:MAX_KEPT_BYTES].decode("utf-8", "replace").rstrip("\r\n")


def _join(pumps: Sequence[threading.Thread], seconds: float) -> None:
    until = time.monotonic() + seconds
    for pump in pumps:
        pump.join(max(0.0, until - time.monotonic()))


def _record(
    environ: Mapping[str, str],
    rank: int,
    status: int,
    last: LastLines,
    kills: out_of_memory.KernelKills,
    ended: float,
) -> exit_records.ExitRecord:
    code, lines = process.exit_code(status), list(last.lines)
    return exit_records.ExitRecord(
        rank=rank,
        code=code,
        signal=-status if status < 0 else None,
        host=_host(environ),
        last_lines=lines,
        last_stderr=last.stderr,
        time=ended,
        cause=exit_records.OUT_OF_MEMORY if out_of_memory.is_cause(code, lines, kills) else "",
        launch=environ.get(environment.LAUNCH_ID, ""),
        error=last.traceback.error,
        place=last.traceback.place,
    )


def _host(environ: Mapping[str, str]) -> str:
    """Returns the name of this machine, and the role and index of a process of a role: the sentence about a failed rank
    shows both."""
    role = environ.get(environment.ROLE)
    return f"{socket.gethostname()}, {role}[{environ.get(environment.ROLE_INDEX)}]" if role else socket.gethostname()


if __name__ == "__main__":
    sys.exit(main())
