"""Starts the processes of roles in one container, waits for them, and ends those that are left.

``python3 -m determined_launch.role_processes FOLDER``, started by the layer with a folder that it has written.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from determined_launch import environment, process, process_table, processes, role_failures
from determined_launch.role_plan import ProcessPlan, RolePlan

TICK_SECONDS = 0.02
DAEMON_SECONDS = 10.0
"""Time that a daemon has to end after SIGTERM."""


class Started(Protocol):
    """A started wrapper."""

    pid: int

    def poll(self) -> "int | None":
        """Returns the status as ``subprocess`` does, None while the wrapper runs."""


class RoleProcesses:
    """The processes of this container."""

    def __init__(self, plan: RolePlan, folder: Path) -> None:
        self._plan = plan
        self._mark = RolePlan.end_mark(folder)
        self._done = RolePlan.done_mark(folder)
        self._running: list[tuple[ProcessPlan, Started]] = []
        self._parent = os.getppid()
        self._code = 0

    def start(self) -> None:
        for planned in self._plan.processes:
            mark = {environment.END_MARK: str(self._mark)} if planned.is_daemon else {}
            self._running.append((planned, _start(planned, {**planned.environment, **mark})))

    def send(self, number: int) -> None:
        """Passes a signal to all processes but the daemons, which the others may need until their end."""
        for planned, started in list(self._running):
            if not planned.is_daemon:
                processes.send(started.pid, number)

    def wait(self) -> int:
        """Returns the code of the first process that failed, else 0."""
        while any(not planned.is_daemon for planned, _ in self._running):
            if not self._look():
                return self._code
        self._done.touch()
        while not self._plan.is_alone and not self._mark.exists():
            if not self._look():
                return self._code
        return self._end_daemons()

    def _look(self) -> bool:
        """Removes ended processes. Returns False if everything has to end."""
        time.sleep(TICK_SECONDS)
        if os.getppid() != self._parent:  # the layer was killed
            processes.kill_below(os.getpid())
            self._code = 1
            return False
        for planned, started in list(self._running):
            status = started.poll()
            if status is None:
                continue
            self._running.remove((planned, started))
            if status != 0:
                self._fail(planned, process.exit_code(status))
                return False
        return True

    def _fail(self, planned: ProcessPlan, code: int) -> None:
        role_failures.say(planned, code, environment.current())
        self._code = code
        for _, started in self._running:
            processes.send(started.pid, signal.SIGTERM)
        # the layer kills what does not end in its period of grace
        while any(started.poll() is None for _, started in self._running):
            time.sleep(TICK_SECONDS)

    def _end_daemons(self) -> int:
        if not self._running:
            return 0
        self._mark.touch()
        for _, started in self._running:
            processes.send(started.pid, signal.SIGTERM)
        until = time.monotonic() + DAEMON_SECONDS
        while self._running and time.monotonic() < until:
            if not self._look():
                return self._code
        for planned, started in self._running:
            print(f"{planned.label} still ran {DAEMON_SECONDS:g} s after SIGTERM and is killed", flush=True)
            for child in process_table.children(started.pid):
                processes.send(child, signal.SIGKILL)
        while self._running:
            if not self._look():
                return self._code
        return 0


def _start(planned: ProcessPlan, variables: Mapping[str, str]) -> Started:
    wrapper = [sys.executable, "-m", "determined_launch.wrap_rank", str(planned.rank), "--", *planned.command]
    return subprocess.Popen(wrapper, env={**environment.current(), **variables}, stdin=subprocess.DEVNULL)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the plan of the folder; returns the code of the first process that failed."""
    folder = Path((sys.argv[1:] if argv is None else argv)[0])
    os.setpgid(0, 0)  # a terminal sends its signals to the layer alone, which passes them on once
    running = RoleProcesses(RolePlan.read(folder), folder)
    with process.SignalForwarder() as signals:
        running.start()
        signals.send_to(running.send)
        return running.wait()


if __name__ == "__main__":
    sys.exit(main())
