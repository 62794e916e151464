"""``run`` executes the grid of a file of parameters, ``check`` prints it."""

import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from determined_workflows.runner import console, errors, grid, output_folder, params_file
from determined_workflows.runner.cluster import record
from determined_workflows.runner.console import Console, TaskCounts
from determined_workflows.runner.errors import RunnerError
from determined_workflows.runner.execution import Execution, Outcome, script, task_files
from determined_workflows.runner.grid import Selection, Task
from determined_workflows.runner.params_file import ParamsFile
from determined_workflows.runner.processes import CommandProcesses
from determined_workflows.runner.signals import Signals
from determined_workflows.runner.supervisor import store
from determined_workflows.runner.task_files import FAILED

OK, TASK_FAILED, ENDED_EARLY = 0, 1, 9
TIME_FORMAT = "%Y%m%d.%H%M%S"


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
    is_retry: bool = False
    is_verbose: bool = False
    is_exit_zero: bool = False
    has_subfolders: bool = True
    program: str = errors.PROGRAM


def run(options: Options) -> int:
    """Runs a grid and returns the exit code: 0, 1 if a task failed, 130 or 143 if a signal ended the run, 9 if it was
    asked to start no more commands.

    Raises ParamsFileError if the grid is wrong, ConflictError if another run uses the output, and RunnerError if the
    output cannot be written.
    """
    file = params_file.read(options.yaml)
    tasks = grid.tasks(file, options.output, options.selection, has_subfolders=options.has_subfolders)
    orphans = console.orphans(grid.orphans(file, tasks))
    if options.is_retry:
        tasks = [task for task in tasks if _has_failed(task, options)]
    if options.is_debug:
        tasks = tasks[:1]
    names = [template.name for task in tasks for template in task.templates]
    lines = Console(
        TaskCounts(len(tasks)),
        names,
        is_verbose=options.is_verbose,
        has_progress=not (options.is_debug or options.is_dry_run),
    )
    lines.say(orphans)
    lines.say(f"Tasks: {len(tasks)}, commands to run: {len(names)}")
    resources = tuple(options.resources or file.resources)
    started = time.strftime(TIME_FORMAT)
    if options.is_dry_run:
        _print_scripts(tasks, resources[0], started, options, lines)
        return OK
    with output_folder.locked(options.output) as lock:
        try:
            record.check_is_over(options.output)
            write_copy(options, file)
            output_folder.begin(options.output)
            lines.keep(options.output / output_folder.CONSOLE)
            code = _execute(tasks, resources, started, options, lock, lines)
            output_folder.end(options.output, code)
        except BrokenPipeError:  # who reads the lines has gone; the commands have been ended
            raise
        except OSError as error:
            raise RunnerError(f"the output {options.output} cannot be written: {error.strerror}") from None
    return code


def check(options: Options) -> None:
    """Prints orphan parameters, counts, and the commands of each task. Raises ParamsFileError if the grid is wrong."""
    file = params_file.read(options.yaml)
    tasks = grid.tasks(file, options.output, options.selection, has_subfolders=options.has_subfolders)
    now = time.strftime(TIME_FORMAT)
    print(console.orphans(grid.orphans(file, tasks)))
    print(f"Tasks: {len(tasks)}, commands to run: {sum(len(task.templates) for task in tasks)}")
    for task in tasks:
        print(console.on_one_line(str(options.output / task.name)))
        for template in task.templates:
            print(f"    {template.name}: {console.on_one_line(task.command(template, now))}")
    workers = len(file.resources)
    print(f"{options.yaml} is valid: {len(tasks)} tasks for {workers} worker{'s' * (workers != 1)}", file=sys.stderr)


def write_copy(options: Options, file: ParamsFile) -> None:
    """Copies the file of parameters into the output. Raises OSError."""
    suffix = f".{options.selection.title}" if options.selection.title else ""
    copy = options.output / f"{options.yaml.name}{suffix}"
    if not (copy.exists() and copy.samefile(options.yaml)):
        store(copy, file.text)


def _has_failed(task: Task, options: Options) -> bool:
    files = task_files(task, has_subfolders=options.has_subfolders)
    files.load()
    return FAILED in files.states.values()


def _execute(
    tasks: Sequence[Task], resources: Sequence[str], started: str, options: Options, lock: int, lines: Console
) -> int:
    processes = CommandProcesses(lock)
    try:
        with Signals() as signals:
            outcome = Execution(
                started,
                lines,
                processes,
                signals,
                is_forced=options.is_forced or options.is_debug,
                is_debug=options.is_debug,
                has_subfolders=options.has_subfolders,
            ).run(tasks, resources)
    finally:
        processes.close()
    lines.end_progress()
    if processes.is_lost:
        lines.say("The process that supervises the commands was killed.")
        outcome.ended_by = signal.SIGKILL
    code = _summarize(outcome, lines, options)
    lines.close()
    return code


def _summarize(outcome: Outcome, lines: Console, options: Options) -> int:
    if outcome.skipped:
        lines.summary("Skipped", outcome.skipped)
    if outcome.failed:
        lines.summary("Failed", outcome.failed)
    else:
        lines.say("No task failed.")
    continues = errors.in_words_of(options.program, "`det runner run` with the same options continues it.")
    if outcome.ended_by is not None:
        lines.say(f"The run was ended by a signal; {continues}")
        return 128 + outcome.ended_by
    if outcome.is_drained:
        lines.say(f"The run was asked to start no more commands; {continues}")
        return ENDED_EARLY
    return TASK_FAILED if outcome.failed and not options.is_exit_zero else OK


def _print_scripts(tasks: Sequence[Task], resource: str, started: str, options: Options, lines: Console) -> None:
    for task in tasks:
        files = task_files(task, has_subfolders=options.has_subfolders)
        for template in task.templates:
            lines.say(script(task.command(template, started), resource, files.log(template.name, started)))
