"""``run``: executes the grid of a file of parameters."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from determined.errors import Conflict, DeterminedError
from determined_launch.atomic_file import write_atomic
from determined_launch.pid_lock import LockHeld, PidLock
from determined_workflows.runner import console, grid, params_file
from determined_workflows.runner.console import Console, say
from determined_workflows.runner.execution import Execution, Outcome, script
from determined_workflows.runner.grid import Selection, Task
from determined_workflows.runner.processes import CommandProcesses
from determined_workflows.runner.task_files import READABLE

FAILED = 1
NO_SIGNAL = 0
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LOCK = ".runner.lock"
TIME_FORMAT = "%Y%m%d.%H%M%S"
TAKEOVER_SECONDS = 10.0
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Options:
    """The flags of ``det runner run``."""

    output: Path = Path("output")
    yaml: Path = Path("params.yaml")
    selection: Selection = field(default_factory=Selection)
    resources: Sequence[str] | None = None
    is_debug: bool = False
    is_dry_run: bool = False
    is_forced: bool = False
    is_verbose: bool = False
    is_exit_zero: bool = False
    has_subfolders: bool = True


def run(options: Options) -> int:
    """Runs a grid and returns the exit code: 0, 1 if a task failed, 130 or 143 if a signal ended the run.

    Raises ParamsFileError if the grid is wrong, Conflict if another run uses the output, and DeterminedError if the
    output cannot be written.
    """
    file = params_file.read(options.yaml)
    tasks = grid.tasks(file, options.output, options.selection, has_subfolders=options.has_subfolders)
    say(console.orphans(grid.orphans(file, tasks)))
    if options.is_debug:
        tasks = tasks[:1]
    say(f"Tasks: {len(tasks)}, commands to run: {sum(len(task.templates) for task in tasks)}")
    resources = tuple(options.resources or file.resources)
    started = time.strftime(TIME_FORMAT)
    if options.is_dry_run:
        _print_scripts(tasks, resources[0], started, options)
        return 0
    with _output_lock(options.output) as lock:
        suffix = f".{options.selection.title}" if options.selection.title else ""
        copy = options.output / f"{options.yaml.name}{suffix}"
        if not (copy.exists() and copy.samefile(options.yaml)):
            write_atomic(copy, file.text, mode=READABLE)
        return _execute(tasks, resources, started, options, lock)


def _execute(tasks: Sequence[Task], resources: Sequence[str], started: str, options: Options, lock: int) -> int:
    names = [template.name for task in tasks for template in task.templates]
    lines = Console(len(tasks), names, is_verbose=options.is_verbose)
    processes = CommandProcesses(lock)
    execution = Execution(
        started, lines, processes, options.is_forced or options.is_debug, options.is_debug, options.has_subfolders
    )
    try:
        with _stopping(processes) as signals:
            outcome = execution.run(tasks, resources)
    finally:
        processes.kill()
        processes.close()
    _summarize(outcome, len(tasks))
    if signals:
        say("The run was ended by a signal; `det runner run` with the same options continues it.")
        return 128 + signals[0]
    return FAILED if outcome.failed and not options.is_exit_zero else 0


def _summarize(outcome: Outcome, total: int) -> None:
    if outcome.skipped:
        console.summary("Skipped", outcome.skipped, total)
    if outcome.failed:
        console.summary("Failed", outcome.failed, total)
    else:
        say("No task failed.")


def _print_scripts(tasks: Sequence[Task], resource: str, started: str, options: Options) -> None:
    for task in tasks:
        suffix = "" if options.has_subfolders else f".{task.name}"
        for template in task.templates:
            log = task.output / f"log.{template.name}.{started}{suffix}"
            say(script(task.command(template, started), resource, log))


@contextmanager
def _stopping(processes: CommandProcesses) -> Iterator[list[int]]:
    """Ends the commands at the first SIGINT, SIGTERM or SIGHUP, and kills them at the second; yields the signals."""
    received: list[int] = []
    # The pipe gets the numbers at once. A handler would wait for the main thread, which waits for the workers: the
    # kernel may have given the signal to another thread.
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def handle(_number: int, _frame: FrameType | None) -> None:
        pass

    def watch() -> None:
        while (number := os.read(reader, 1)[0]) != NO_SIGNAL:
            # The pipe gets every signal that has a handler: libraries set one for SIGCHLD.
            if number in ENDING:
                received.append(number)
                (processes.stop if len(received) == 1 else processes.kill)()

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = [signal.signal(number, handle) for number in ENDING]
    wakeup = signal.set_wakeup_fd(writer)
    try:
        yield received
    finally:
        for number, handler in zip(ENDING, before, strict=True):
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.write(writer, bytes([NO_SIGNAL]))
        watcher.join()
        os.close(reader)
        os.close(writer)


@contextmanager
def _output_lock(output: Path) -> Iterator[int]:
    """Creates the output and holds its lock. The commands of a runner that was killed are ended by its guard first."""
    try:
        output.mkdir(parents=True, exist_ok=True)
        lock = _take(output / LOCK)
    except OSError as error:
        raise DeterminedError(f"the output {output} cannot be written: {error.strerror}") from None
    with lock:
        yield lock.fileno()


def _take(path: Path) -> PidLock:
    deadline = time.monotonic() + TAKEOVER_SECONDS
    while True:
        try:
            return PidLock(path)
        except LockHeld as error:
            if (error.pid and _is_alive(error.pid)) or time.monotonic() > deadline:
                raise Conflict(
                    f"another run (process {error.pid or 'unknown'}) uses {path.parent}; wait for it, or choose "
                    "another output with -o"
                ) from None
            time.sleep(POLL_SECONDS)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
