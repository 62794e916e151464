"""Runs jobs of a workflow on this machine: their output is printed and kept, and a signal ends all they started.

``kept`` is the folder in which a run keeps its lock, its output and its state. The jobs are supervised as the commands
of the grid runner are.
"""

import itertools
import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path

from determined.errors import Conflict, DeterminedError
from determined_workflows.runner import output_folder
from determined_workflows.runner.errors import ConflictError, RunnerError
from determined_workflows.runner.execution import GRACE_SECONDS
from determined_workflows.runner.processes import CommandProcesses
from determined_workflows.runner.signals import KILL, Signals
from determined_workflows.runner.supervisor import MARK, Start
from determined_workflows.runner.task_files import FAILED, FINISHED, RUNNING

STATE = "state"
_DEVICES = "CUDA_VISIBLE_DEVICES"


class SupervisedRun:
    """A run that this process holds. ``ended_by`` is the signal that ended its jobs, if one did."""

    def __init__(
        self, kept: Path, processes: CommandProcesses, signals: Signals, *, grace_seconds: float = GRACE_SECONDS
    ) -> None:
        """``grace_seconds``: time between the signal that ends jobs and their kill."""
        self.ended_by: int | None = None
        self._console = kept / output_folder.CONSOLE
        self._grace_seconds = grace_seconds
        self._processes, self._signals = processes, signals
        self._ids = map(str, itertools.count(1))

    def say(self, text: str) -> None:
        """Prints a line and keeps it."""
        with self._console.open("a", encoding="utf-8", errors="backslashreplace") as console:
            console.write(f"{text}\n")
        print(text, flush=True)

    def run(self, line: str, kept: Path, *, is_submission: bool = False) -> bool:
        """Runs a line of bash whose state is kept in ``kept``. Returns True if it ended with 0.

        ``is_submission``: the line submits to Slurm. The jobs that Slurm starts, even on this machine, lack the
        mark of this run and are not killed with it.
        """
        kept.mkdir(parents=True, exist_ok=True)
        forgotten = [*([_DEVICES] if _DEVICES not in os.environ else []), *([MARK] if is_submission else [])]
        unset = f"unset {' '.join(forgotten)}; " if forgotten else ""
        # The signals that end the job go to the shells and to tee too, which have to outlive it: the supervisor kills
        # what is left when the first shell has ended, and tee prints the last lines.
        waiting = "trap : TERM INT HUP; "
        keeping = f"(trap '' TERM INT HUP; exec tee -a {shlex.quote(str(self._console.resolve()))})"
        script = f"{waiting}set -o pipefail; {unset}export PYTHONUNBUFFERED=1; {{ {waiting}{line}\n}} 2>&1 | {keeping}"
        texts = (f"{state}\n" for state in (RUNNING, FINISHED, FAILED))
        id = next(self._ids)
        devices = os.environ.get(_DEVICES, "")
        self._processes.start(id, Start(script, devices, None, str(kept / STATE), *texts))
        return self._wait(id)

    def _wait(self, id: str) -> bool:
        kill_at: float | None = None
        while True:
            left = None if kill_at is None else max(0.0, kill_at - time.monotonic())
            ready = wait([self._processes.fileno(), self._signals.fileno()], left)
            for number in self._signals.read():
                is_first = self.ended_by is None and number != KILL
                self.ended_by = self.ended_by or (signal.SIGTERM if number == KILL else number)
                self._processes.signal(signal.SIGTERM if is_first else signal.SIGKILL)
                kill_at = time.monotonic() + self._grace_seconds if is_first else None
            if kill_at is not None and time.monotonic() >= kill_at:
                self._processes.signal(signal.SIGKILL)
                kill_at = None
            if self._processes.fileno() in ready:
                for end in self._processes.ends():
                    if end.id == id:
                        if end.reason:
                            print(end.reason, file=sys.stderr)
                        return end.code == 0


@contextmanager
def held(kept: Path, *, stop: str, grace_seconds: float = GRACE_SECONDS) -> Iterator[SupervisedRun]:
    """Creates the folder of a run and holds it for jobs of this machine. ``stop``: the command that ends such a run.

    Raises Conflict if another process runs in it, and DeterminedError if it cannot be written.
    """
    try:
        with output_folder.locked(kept) as lock:
            output_folder.begin(kept)
            processes = CommandProcesses(lock)
            try:
                with Signals() as signals:
                    yield SupervisedRun(kept, processes, signals, grace_seconds=grace_seconds)
            finally:
                processes.close()
    except ConflictError:
        raise Conflict(
            f"process {process(kept) or 'unknown'} runs in {kept.parent}; wait, or end it by `{stop}`"
        ) from None
    except RunnerError as error:
        raise DeterminedError(str(error)) from None


def process(kept: Path) -> int | None:
    """Returns the process that runs the jobs of a run on this machine, or None."""
    return output_folder.runner(kept)


def stop(kept: Path, *, is_killing: bool = False) -> bool:
    """Ends the jobs of a run on this machine and waits for their end. Returns False if none runs.

    They get SIGTERM and are killed after a grace period; with ``is_killing`` at once. Raises DeterminedError if they
    are another user's, and Conflict if they run on another machine.
    """
    pid = process(kept)
    if pid is None:
        return False
    host = output_folder.other_host(kept)
    if host is not None:
        raise Conflict(f"the run of {kept.parent} (process {pid}) is on {host}; end it there")
    try:
        os.kill(pid, KILL if is_killing else signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError:
        raise DeterminedError(f"the run of {kept.parent} (process {pid}) is another user's") from None
    print(f"stopping the run of {kept.parent} (process {pid})", file=sys.stderr)
    while process(kept) == pid:
        time.sleep(output_folder.POLL_SECONDS)
    print(f"the run of {kept.parent} has ended", file=sys.stderr)
    return True


def console(kept: Path) -> Path:
    """Returns the file with the output of the runs on this machine."""
    return kept / output_folder.CONSOLE


def state(kept: Path) -> str | None:
    """Returns the state of the last run on this machine: running, finished or failed; None if there was none."""
    try:
        return (kept / STATE).read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
