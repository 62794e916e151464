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

from determined_launch import (
    arguments,
    environment,
    exit_records,
    process,
    process_table,
    processes,
    role_failures,
    role_forks,
    runner,
)
from determined_launch.errors import LaunchError
from determined_launch.role_plan import ProcessPlan, RolePlan

TICK_SECONDS = 0.02
DAEMON_SECONDS = 10.0
"""Time that a daemon has to end after SIGTERM."""


_WHY_NOT = (
    "its command is neither python3 SCRIPT.py … nor python3 -m MODULE …, or its environment differs from that of {}"
)


class WrapperProcess(Protocol):
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
        self._running: list[tuple[ProcessPlan, WrapperProcess]] = []
        self._asked: list[int] = []
        self._parent = os.getppid()
        self._environ = environment.current()
        self._code = 0

    def start(self) -> None:
        """Starts all processes: as forks where their modules are imported once, else as new processes."""
        forked = self._preload()
        for planned in self._plan.processes:
            if planned in forked:
                started: WrapperProcess = role_forks.fork_wrapper(planned)
            else:
                started = _start(planned, self.variables(planned))
            self._running.append((planned, started))

    def variables(self, planned: ProcessPlan) -> dict[str, str]:
        """Returns the environment of one process."""
        mark = {environment.END_MARK: str(self._mark)} if planned.is_daemon else {}
        return {**self._environ, **planned.environment, **mark}

    def _preload(self) -> Sequence[ProcessPlan]:
        """Imports the modules to preload; returns the processes that can be forks of this one.

        A library may read the environment while it is imported. This process therefore has the variables of the first
        of the roles, and a role with other ones is started as usual.
        """
        forkable = [planned for planned in self._plan.processes if role_forks.can_run(planned.command)]
        if not self._plan.preload or not forkable:
            return ()
        common, first = forkable[0].own_environment, forkable[0].label.partition("[")[0]
        environment.put(common)
        reason = role_forks.preload(self._plan.preload)
        if reason:
            say(f"preload has no effect: {reason}")
            return ()
        forked = [planned for planned in forkable if planned.own_environment == common]
        others = {planned.label.partition("[")[0] for planned in self._plan.processes if planned not in forked}
        if others:
            say(f"preload has no effect on {', '.join(sorted(others))}: {_WHY_NOT.format(first)}")
        return forked

    def send(self, number: int) -> None:
        """Passes a signal to all processes but the daemons, which the others may need until their end."""
        if number in runner.ENDING:
            self._asked.append(number)
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
        if self._is_orphan():
            self._code = 1
            return False
        for planned, started in list(self._running):
            status = started.poll()
            if status is None:
                continue
            self._running.remove((planned, started))
            if status != 0 and self._fails(planned, process.exit_code(status)):
                return False
        return True

    def _fails(self, planned: ProcessPlan, code: int) -> bool:
        """Says how a process failed. Returns True if the others have to end."""
        if self._asked:
            self._code = self._code or code  # the others may be saving a checkpoint
            return False
        # another one may have failed before it, whose wrapper is slower
        record = next((one for one in self._records() if one.has_failed), None)
        if record is not None:
            planned = next(one for one in self._plan.processes if one.rank == record.rank)
        self._code = code if record is None else record.code
        say(role_failures.sentence(planned, self._code, record))
        for _, started in self._running:
            processes.send(started.pid, signal.SIGTERM)
        # the layer kills what does not end in its period of grace
        while any(started.poll() is None for _, started in self._running) and not self._is_orphan():
            time.sleep(TICK_SECONDS)
        return True

    def _is_orphan(self) -> bool:
        """Returns True if the layer was killed; then kills the processes, which nobody else would end."""
        if os.getppid() == self._parent:
            return False
        processes.kill_below(os.getpid())
        return True

    def _records(self) -> list[exit_records.ExitRecord]:
        folder = exit_records.folder(self._environ)
        return exit_records.of_launch(folder, self._environ.get(environment.LAUNCH_ID, ""))

    def _end_daemons(self) -> int:
        self._mark.touch()
        for _, started in self._running:
            processes.send(started.pid, signal.SIGTERM)
        until = time.monotonic() + DAEMON_SECONDS
        while self._running and time.monotonic() < until:
            if not self._look():
                return self._code
        for planned, started in self._running:
            say(f"{planned.label} still ran {DAEMON_SECONDS:g} s after SIGTERM and is killed")
            for child in process_table.children(started.pid):
                processes.send(child, signal.SIGKILL)
        while self._running:
            if not self._look():
                return self._code
        return self._code


def _start(planned: ProcessPlan, variables: Mapping[str, str]) -> WrapperProcess:
    wrapper = [sys.executable, "-m", "determined_launch.wrap_rank", str(planned.rank), "--", *planned.command]
    return subprocess.Popen(wrapper, env=dict(variables), stdin=subprocess.DEVNULL)


def say(text: str) -> None:
    """Writes a line of the layer to the log."""
    print(f"{arguments.ROLES}: {text}", file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the plan of the folder; returns the code of the first process that failed."""
    folder = Path((sys.argv[1:] if argv is None else argv)[0])
    os.setpgid(0, 0)  # a terminal sends its signals to the layer alone, which passes them on once
    running = RoleProcesses(RolePlan.read(folder), folder)
    try:
        return _run(running)
    except role_forks.WrapperFork as fork:
        wrapper = fork
    # outside of the handlers: nothing of the parent is left in the forks, also in no traceback
    try:
        code = wrapper.run(running.variables(wrapper.planned))
        sys.stdout.flush()
        os._exit(code)  # the modules of the program would take long to end
    except role_forks.ProgramFork as fork:
        program = fork
    return program.run(wrapper.planned.label)


def _run(running: RoleProcesses) -> int:
    with process.SignalForwarder() as signals:
        try:
            running.start()
        except LaunchError as error:
            say(str(error))
            return 1
        signals.send_to(running.send)
        return running.wait()


if __name__ == "__main__":
    sys.exit(main())
