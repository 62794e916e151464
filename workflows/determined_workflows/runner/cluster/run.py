"""``run --on det`` and ``retry --on det``: submit what is left of a grid, or what failed, and follow it."""

import time
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from determined.client import checkpoints, experiments, lifecycle
from determined.client.session import Session
from determined.errors import ConfigError, NotFound
from determined.experimental.client import Experiment
from determined_workflows.runner import console, grid, output_folder, params_file
from determined_workflows.runner.cluster import plan as plans
from determined_workflows.runner.cluster import record as records
from determined_workflows.runner.cluster.following import Follower, show_status
from determined_workflows.runner.cluster.record import Record
from determined_workflows.runner.cluster.submission import submit
from determined_workflows.runner.console import Console, TaskCounts
from determined_workflows.runner.control import INTERRUPTED
from determined_workflows.runner.errors import NotFoundError
from determined_workflows.runner.grid import Task
from determined_workflows.runner.run import TASK_FAILED, TIME_FORMAT, Options, write_copy


def run(session: Session, options: Options, changes: Sequence[str] = (), *, is_detached: bool = False) -> int:
    """Runs a grid on the cluster, or what failed of it, and returns the exit code: 0, or 1 if a task failed.

    ``changes`` are settings of the experiment (``key.path=value``). Without ``is_detached`` it follows the experiment
    and fetches its outputs.

    Raises ParamsFileError if the grid is wrong, ConfigError if the experiment would be, and Conflict if another run
    uses the output.
    """
    _refuse(options)
    file = params_file.read(options.yaml)
    tasks = grid.tasks(file, options.output, options.selection)
    resources = tuple(options.resources or file.resources)
    with output_folder.locked(options.output):
        records.check_is_over(options.output)
        earlier = None if options.is_forced else _available(session, records.read(options.output))
        waiting = _to_run(tasks, options)
        lines = Console(TaskCounts(len(tasks), skipped=len(tasks) - len(waiting)), (), is_verbose=options.is_verbose)
        lines.say(console.orphans(grid.orphans(file, tasks)))
        lines.say(f"Tasks: {len(tasks)}, trials to run: {len(waiting)}")
        if not waiting:
            lines.say("No task has failed." if options.is_retry else "All tasks have finished; -f runs them again.")
            return 0
        plan = plans.plan(
            waiting,
            options.output,
            resources,
            time.strftime(TIME_FORMAT),
            name=f"grid of {options.yaml.name}",
            changes=changes,
            earlier=earlier,
        )
        if plan.warnings:
            lines.say(plan.warnings)
        if options.is_dry_run:
            lines.say(plan.config.rstrip())
            return 0
        write_copy(options, file)
        number, notes = submit(session, plan, Path.cwd(), options.output)
        for note in notes:
            lines.say(note)
        record = Record(session.master, number, plan.tasks, fetched=dict(earlier.fetched) if earlier else {})
        record.write(options.output)
        lines.say(f"Experiment {number}: {session.master}/experiments/{number}")
        if is_detached:
            lines.say("`det runner logs -f` follows it and fetches its outputs.")
            return 0
        code = _follow(session, record, options.output, lines)
    return 0 if code == TASK_FAILED and options.is_exit_zero else code


def _to_run(tasks: Sequence[Task], options: Options) -> Sequence[Task]:
    if options.is_retry:
        return plans.failed(tasks)
    return tasks if options.is_forced else plans.unfinished(tasks)


def attach(session: Session, output: Path) -> int:
    """Follows the experiment of an output and fetches what has ended. Raises NotFoundError if there is none."""
    record = of_output(output, session)
    if record.is_over:
        print(f"Experiment {record.experiment} has ended, and its outputs were fetched.")
        return 0
    with output_folder.locked(output):
        return _follow(session, record, output, Console(TaskCounts(len(record.tasks)), ()))


def status(session: Session, output: Path) -> None:
    """Prints the states of the trials of an output. Raises NotFoundError if there is none."""
    show_status(session, of_output(output, session))


def trial_of(session: Session, record: Record, task: str) -> int:
    """Returns the trial of a task, which may be named by its folder. Raises NotFoundError if it has not started."""
    _check_master(record, session)
    name = Path(task).name
    for trial in Experiment(session, experiments.get(session, record.experiment)).list_trials():
        if trial.hparams.get("_name") == name:
            return int(trial.id)
    if name in record.tasks:
        raise NotFoundError(f"the task {name} has not started yet; `det runner status` prints the states of all")
    near = get_close_matches(name, record.tasks, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else "; `det runner status` prints the names of all"
    raise NotFoundError(f'experiment {record.experiment} has no task "{name}"{hint}')


def stop(session: Session, output: Path, *, is_killing: bool = False) -> None:
    """Cancels the experiment of an output: running commands are interrupted, and the folders of tasks are stored.

    With ``is_killing`` nothing is stored. ``logs --follow`` fetches what there is. Raises NotFoundError if there is no
    experiment.
    """
    record = of_output(output, session)
    lifecycle.steer(session, record.experiment, "kill" if is_killing else "cancel")
    print(f"Experiment {record.experiment} is ending; `det runner logs -f` fetches its outputs.")


def of_output(output: Path, session: Session | None = None) -> Record:
    """Returns the record of an output. Raises NotFoundError if no experiment ran its grid, ConfigError if ``session``
    is one of another master, where its number names another experiment."""
    record = records.read(output)
    if record is None:
        raise NotFoundError(f"no experiment runs the grid of {output}")
    if session is not None:
        _check_master(record, session)
    return record


def _check_master(record: Record, session: Session) -> None:
    if record.master != session.master:
        raise ConfigError(
            f"the grid runs on {record.master}, not on {session.master}: leave out -m, or name that master"
        )


def _follow(session: Session, record: Record, output: Path, lines: Console) -> int:
    output_folder.begin(output)
    lines.keep(output / output_folder.CONSOLE)
    try:
        code = Follower(session, record, output, lines).follow()
        output_folder.end(output, code)
        return code
    except KeyboardInterrupt:
        lines.end_progress()
        lines.say(f"\nDetached; experiment {record.experiment} goes on. `det runner logs -f` follows it again.")
        return INTERRUPTED


def _refuse(options: Options) -> None:
    if not options.has_subfolders:
        raise ConfigError("--no-subdir has no effect with --on det: each trial has a folder of its own; leave it out")
    if options.is_debug:
        raise ConfigError("--debug runs the first task here; leave out --on det")
    if not options.output.name:
        raise ConfigError(f"-o {options.output}: with --on det the output is a folder below the working folder")


def _available(session: Session, record: Record | None) -> Record | None:
    """Returns the record without tasks whose checkpoints were deleted, or None if it is of another master."""
    if record is None or record.master != session.master:
        return None
    kept = {}
    for name, fetched in record.fetched.items():
        try:
            state = checkpoints.get(session, fetched.checkpoint).get("state")
        except NotFound:
            continue
        if state == "STATE_COMPLETED":
            kept[name] = fetched
    record.fetched = kept
    return record
