"""Runs jobs on this machine: their output is printed and kept in the run folder, and a signal ends all they started.

The jobs are supervised as the commands of the grid runner are.
"""

import itertools
import os
import select
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from determined.errors import Conflict, DeterminedError
from determined_workflows.hydra import run_record
from determined_workflows.runner import output_folder
from determined_workflows.runner.errors import ConflictError, RunnerError
from determined_workflows.runner.execution import GRACE_SECONDS
from determined_workflows.runner.processes import CommandProcesses
from determined_workflows.runner.signals import KILL, Signals
from determined_workflows.runner.supervisor import MARK, Start
from determined_workflows.runner.task_files import FAILED, FINISHED, RUNNING

_DEVICES = "CUDA_VISIBLE_DEVICES"


class LocalRun:
    """A run folder that this process holds. ``ended_by`` is the signal that ended its jobs, if one did."""

    def __init__(self, folder: Path, processes: CommandProcesses, signals: Signals) -> None:
        self.ended_by: int | None = None
        self._console = run_record.kept_in(folder) / output_folder.CONSOLE
        self._processes, self._signals = processes, signals
        self._ids = map(str, itertools.count(1))

    def say(self, text: str) -> None:
        """Prints a line and keeps it."""
        with self._console.open("a", encoding="utf-8", errors="backslashreplace") as console:
            console.write(f"{text}\n")
        print(text, flush=True)

    def run(self, line: str, folder: Path, *, is_submission: bool = False) -> bool:
        """Runs a line of bash whose state is kept in ``folder``. Returns True if it ended with 0.

        What an ``is_submission`` starts elsewhere, also on this machine, does not belong to this run.
        """
        kept = run_record.kept_in(folder)
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
        self._processes.start(id, Start(script, devices, None, str(kept / run_record.STATE), *texts))
        return self._wait(id)

    def _wait(self, id: str) -> bool:
        kill_at: float | None = None
        while True:
            left = None if kill_at is None else max(0.0, kill_at - time.monotonic())
            sources: list[CommandProcesses | Signals] = [self._processes, self._signals]
            ready, _, _ = select.select(sources, [], [], left)
            for number in self._signals.read():
                is_first = self.ended_by is None and number != KILL
                self.ended_by = self.ended_by or (signal.SIGTERM if number == KILL else number)
                self._processes.signal(signal.SIGTERM if is_first else signal.SIGKILL)
                kill_at = time.monotonic() + GRACE_SECONDS if is_first else None
            if kill_at is not None and time.monotonic() >= kill_at:
                self._processes.signal(signal.SIGKILL)
                kill_at = None
            if self._processes in ready:
                for end in self._processes.ends():
                    if end.id == id:
                        if end.reason:
                            print(end.reason, file=sys.stderr)
                        return end.code == 0


@contextmanager
def held(folder: Path) -> Iterator[LocalRun]:
    """Creates a run folder and holds it for jobs of this machine.

    Raises Conflict if another process runs in it, and DeterminedError if it cannot be written.
    """
    kept = run_record.kept_in(folder)
    try:
        with output_folder.locked(kept) as lock:
            output_folder.begin(kept)
            processes = CommandProcesses(lock)
            try:
                with Signals() as signals:
                    yield LocalRun(folder, processes, signals)
            finally:
                processes.close()
    except ConflictError:
        raise Conflict(
            f"process {process(folder) or 'unknown'} runs in {folder}; wait, or end it by `det hydra stop {folder}`"
        ) from None
    except RunnerError as error:
        raise DeterminedError(str(error)) from None


def process(folder: Path) -> int | None:
    """Returns the process that runs the jobs of a folder on this machine, or None."""
    return output_folder.runner(run_record.kept_in(folder))


def stop(folder: Path, *, is_killing: bool = False) -> bool:
    """Ends the jobs of a folder on this machine and waits for their end. Returns False if none runs.

    They get SIGTERM and are killed after a grace period; with ``is_killing`` at once. Raises DeterminedError if they
    are another user's.
    """
    pid = process(folder)
    if pid is None:
        return False
    try:
        os.kill(pid, KILL if is_killing else signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError:
        raise DeterminedError(f"the run of {folder} (process {pid}) is another user's") from None
    print(f"stopping the run of {folder} (process {pid})", file=sys.stderr)
    while process(folder) == pid:
        time.sleep(output_folder.POLL_SECONDS)
    print(f"the run of {folder} has ended", file=sys.stderr)
    return True


def console(folder: Path) -> Path:
    """Returns the file with the output of the runs on this machine."""
    return run_record.kept_in(folder) / output_folder.CONSOLE


def state(folder: Path) -> str | None:
    """Returns how the last run on this machine stands: running, finished or failed; None if there was none."""
    try:
        return (run_record.kept_in(folder) / run_record.STATE).read_text(encoding="utf-8").strip() or None
    except OSError:
        return None
