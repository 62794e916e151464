"""The small parent of a process task that outlives the agent: run as ``python -I -S shim.py ORDER_FILE SOURCE_ROOTS``,
or forked by ``fork_server.py``.

Uses the standard library only and imports everything at the start, so that an upgrade of the agent does not affect it.
It starts the task in its own session, writes the task's output to disk, ends every descendant when the task ends, and
finally records how the task ended. On SIGTERM it ends the task too; one that keeps outputs gets time to store them. See
docs/architecture/agent-protocol.md, rule "Exit".
"""

import fcntl
import json
import os
import select
import selectors
import signal
import sys
import time
from typing import Any

if __name__ == "__main__":
    # Last, because modules beside an installed package may have names of the standard library.
    sys.path += sys.argv[2].split(os.pathsep)

from determined_agent.output.line_splitter import LineSplitter
from determined_agent.output.log_segments import STDERR, STDOUT, SegmentWriter
from determined_agent.task_process import processes
from determined_agent.task_process.task_spawn import Programs, StartedTask, TaskNotStarted, start_task
from determined_launch import end_request, process_table
from determined_launch.atomic_file import write_atomic
from determined_launch.out_of_space import is_out_of_space

_DRAIN_SECONDS = 5.0
DISK_RETRY_SECONDS = 1.0
"""Pause between two attempts to write to a full disk."""


def main(order_file: str, programs: Programs) -> int:
    """Returns 0 when the task has ended. ``programs`` are those that need no other Python; see ``start_task``."""
    # Descriptors that the agent inherited would keep pipes from ending.
    os.closerange(3, 1 << 16)
    order: dict[str, Any] = _read(order_file)
    if order.get("log"):
        _append_errors_to(order["log"])
    lock = os.open(order["lock"], os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if os.path.exists(order["exit"]):
        return 0  # a restarted agent considered this shim dead before it had started
    os.umask(0o077)
    processes.become_subreaper()
    started = process_table.find(os.getpid())
    pid = {"pid": os.getpid(), "started": started.started if started is not None else None}
    write_atomic(order["pid"], json.dumps(pid), is_durable=False)  # a power failure ends this process too
    Shim(order, lock, programs).run()
    return 0


class Shim:
    """Runs one task from its start to the exit file."""

    def __init__(self, order: dict[str, Any], lock: int, programs: Programs) -> None:
        self._order = order
        self._programs = programs
        self._lock = lock
        self._wake = os.open(order["wake"], os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._writer = SegmentWriter(order["output"], segment_bytes=order["segment_bytes"], limit=order["output_limit"])
        self._selector = selectors.DefaultSelector()
        self._splitters: dict[int, tuple[int, LineSplitter]] = {}
        self._task: StartedTask | None = None
        self._status: dict[str, Any] | None = None
        self._is_stopped = self._was_killed = False
        self._may_store_until: float | None = None
        """Until then, a task that was asked to end may end by itself."""

    def run(self) -> None:
        bell, clapper = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(clapper, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        try:
            self._task = start_task(self._order, self._programs, close=(self._lock,))
        except TaskNotStarted as problem:
            self._finish({"error": str(problem)})
            return
        self._selector.register(bell, selectors.EVENT_READ)
        for pipe, stream in ((self._task.stdout, STDOUT), (self._task.stderr, STDERR)):
            os.set_blocking(pipe, False)
            self._selector.register(pipe, selectors.EVENT_READ)
            self._splitters[pipe] = (stream, LineSplitter(self._order["line_limit"]))
        self._report_start()
        until: float | None = None
        while self._splitters or self._status is None:
            if until is not None and self._writer.is_blocked:
                until = time.monotonic() + _DRAIN_SECONDS  # the pipes are read again after space is available
            if until is not None and time.monotonic() > until:
                break  # does not wait for a pipe that another process holds open
            self._turn(bell, self._may_store_until if until is None else until)
            if self._is_stopped and self._status is None:
                self._was_killed = True
                if not self._ends_itself():
                    self._kill()
            self._reap()
            if self._status is not None and until is None:
                self._kill()
                until = time.monotonic() + _DRAIN_SECONDS
        self._kill()
        self._finish(self._status or {"signal": int(signal.SIGKILL)})

    def _turn(self, bell: int, until: float | None) -> None:
        if self._writer.is_blocked:
            self._wait_for_space(bell)
            return
        deadlines = [d for _, splitter in self._splitters.values() if (d := splitter.deadline) is not None]
        if until is not None:
            deadlines.append(until)
        wait = max(min(deadlines) - time.monotonic(), 0.0) if deadlines else None
        for key, _ in self._selector.select(wait):
            if key.fd == bell:
                os.read(bell, 4096)
            else:
                self._read(key.fd)
        now = time.monotonic()
        for stream, splitter in self._splitters.values():
            self._add(stream, splitter.due(now))
        self._flush()

    def _wait_for_space(self, bell: int) -> None:
        """Reads nothing while the disk is full, so that a task that prints waits too and no line is lost."""
        if select.select([bell], [], [], DISK_RETRY_SECONDS)[0]:
            os.read(bell, 4096)
        self._flush()

    def _read(self, pipe: int) -> None:
        stream, splitter = self._splitters[pipe]
        data = os.read(pipe, 1 << 18)
        if data:
            self._add(stream, splitter.feed(data, time.monotonic()))
            return
        self._add(stream, splitter.finish())
        self._selector.unregister(pipe)
        os.close(pipe)
        del self._splitters[pipe]

    def _add(self, stream: int, lines: list[bytes]) -> None:
        now = time.time()
        for line in lines:
            self._writer.add(stream, line, now)

    def _flush(self) -> None:
        before = self._writer.end
        self._writer.flush()
        if self._writer.end != before:
            try:
                os.write(self._wake, b".")
            except BlockingIOError:
                pass  # the fifo is full: an agent that returns finds enough bytes in it

    def _reap(self) -> bool:
        """Collects all ended children, which include orphans of the task. Returns False if no child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if self._task is not None and pid == self._task.pid:
                self._status = self._task.outcome(status)

    def _stop(self, *_: object) -> None:
        self._is_stopped = True

    def _ends_itself(self) -> bool:
        """Asks the task to end, once. Returns False if it does not listen, or had its time."""
        now = time.monotonic()
        if self._may_store_until is None:
            listens = end_request.send(self._order.get("end_request", ""))
            self._may_store_until = now + end_request.END_SECONDS if listens else now
        return now < self._may_store_until

    def _kill(self) -> None:
        """Ends all descendants and collects them, so that dead processes are not found again."""
        own = os.getpid()

        def find() -> set[int]:
            # Every descendant is below a child: this process takes over what its descendants leave.
            return set(process_table.descendants(own)) if self._reap() else set()

        stubborn = processes.kill_all(find)
        if stubborn:
            print(f"could not be killed: {sorted(stubborn)}", file=sys.stderr, flush=True)

    def _report_start(self) -> None:
        """Tells a listening agent that the task runs; closing the pipe without a message means that it does not."""
        try:
            os.write(1, b"started\n")
        except OSError:
            pass
        _silence()

    def _finish(self, status: dict[str, Any]) -> None:
        for stream, splitter in self._splitters.values():
            self._add(stream, splitter.finish())
        self._flush()
        while self._writer.is_blocked:
            time.sleep(DISK_RETRY_SECONDS)
            self._flush()
        self._writer.close()
        end = {"format": 1, "stopped": self._was_killed, "time": time.time(), **status}
        _write(self._order["exit"], end)
        _silence()


def _append_errors_to(path: str) -> None:
    """Writes what this shim complains about into a file: inside a container nobody reads its error output."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(log, 2)
    os.close(log)


def _silence() -> None:
    void = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(void, 1)
    os.close(void)


def _read(path: str) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        value: dict[str, Any] = json.load(file)
    return value


def _write(path: str, value: dict[str, Any]) -> None:
    """Writes a file atomically. Waits while the disk is full: without the record the end of the task is unknown."""
    while True:
        try:
            write_atomic(path, json.dumps(value))
            return
        except OSError as error:
            if not is_out_of_space(error):
                raise
        time.sleep(DISK_RETRY_SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], {}))
