"""``det hydra init``, and ``status``, ``logs`` and ``stop`` of a run folder."""

import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from determined.client.session import Session
from determined.errors import Conflict, DeterminedError, NotFound
from determined_cli.hydra.here import shown
from determined_cli.terminal.messages import INTERRUPTED, say
from determined_workflows import supervised_run
from determined_workflows.hydra import example, run_logs, run_record, run_status, slurm_queue
from determined_workflows.hydra.run_record import Record

SLURM_SECONDS = 2.0
"""Pause between two questions to Slurm."""


def init(args: Namespace) -> None:
    """Writes the example project."""
    for path in example.init(Path(args.folder)):
        say(f"wrote {path}")
    inside = "" if args.folder == "." else f"cd {args.folder}; "
    say(f"`{inside}det hydra run train.py --on local` runs it here, without --on local on the cluster")


def status(args: Namespace) -> None:
    """Prints one line for each job, and a summary."""
    folder, record = _read(args)
    if record is not None and record.experiment is not None:
        from determined_workflows.hydra import run_on_cluster

        state, jobs = run_on_cluster.status(_session(args, record), record)
        for job in jobs:
            print(job.line())
        print(f"Experiment {record.experiment} of {record.master}: {state}")
    else:
        try:
            queue = run_status.queue_of(folder, record)
        except DeterminedError as error:
            say(f"warning: {error.message}; these are the states of the files")
            queue = []
        jobs = run_status.read(folder, record, queue)
        if not jobs:
            raise NotFound(f"no job of {folder} has begun here: none of its folders has .hydra")
        for job in jobs:
            print(job.line())
    print(run_status.summary(jobs))


def logs(args: Namespace) -> int:
    """Prints the output of a run or of one job. With ``--follow`` returns 130 if Ctrl-C ended it."""
    folder, record = _read(args)
    try:
        if record is not None and record.experiment is not None:
            _print_trials(_session(args, record), record, args)
        else:
            run_logs.show(folder, record, args.job, is_running=_is_running(folder, record) if args.follow else None)
    except KeyboardInterrupt:
        say(f"\ndetached; the run goes on. `det hydra logs -f {shown(folder)}` shows it again")
        return INTERRUPTED
    return 0


def stop(args: Namespace) -> None:
    """Ends the jobs of a folder. Raises Conflict if none runs."""
    folder, record = _read(args)
    if record is not None and record.experiment is not None:
        from determined_workflows.hydra import run_on_cluster

        run_on_cluster.stop(_session(args, record), record, is_killing=args.now)
        say(f"experiment {record.experiment} is ending; `det hydra status {shown(folder)}` shows its jobs")
        return
    queue = run_status.queue_of(folder, record)
    if queue:
        slurm_queue.cancel(queue, is_killing=args.now)
        say(f"ended jobs of Slurm: {', '.join(job.id for job in queue)}")
    if not supervised_run.stop(run_record.kept_in(folder), is_killing=args.now) and not queue:
        raise Conflict(f"no run uses {folder}; `det hydra status {shown(folder)}` prints how its jobs ended")


def _read(args: Namespace) -> tuple[Path, Record | None]:
    folder = Path(args.folder)
    run_status.check_is_run(folder)
    return folder, run_record.read(folder)


def _session(args: Namespace, record: Record) -> Session:
    from determined_cli import connection

    args.options.master = args.options.master or record.master
    return connection.connect(args.options)


def _is_running(folder: Path, record: Record | None) -> Callable[[], bool]:
    """Returns a function that says if jobs still run or wait. It asks Slurm seldom."""
    next_look = 0.0
    is_queued = False

    def check() -> bool:
        nonlocal next_look, is_queued
        if supervised_run.process(run_record.kept_in(folder)) is not None:
            return True
        if time.monotonic() >= next_look:
            is_queued = bool(run_status.queue_of(folder, record))
            next_look = time.monotonic() + SLURM_SECONDS
        return is_queued

    return check


def _print_trials(session: Session, record: Record, args: Namespace) -> None:
    """Prints the logs of the trials, one after the other. Raises NotFound if no asked job has begun."""
    from determined_cli.logs import print_trial
    from determined_workflows.hydra import run_on_cluster

    asked = [args.job] if args.job is not None else list(record.numbers)
    begun = run_on_cluster.trials(session, record)
    if not args.follow and not any(number in begun for number in asked):
        run_on_cluster.trial_of(session, record, asked[0])  # raises the error that says why
    for number in asked:
        if args.follow:
            trial_id = run_on_cluster.wait_for_trial(session, record, number)
        else:
            trial_id = int(begun[number]["id"]) if number in begun else None
        if trial_id is None:
            continue
        if len(asked) > 1:
            print(f"==> job {number} (trial {trial_id}) <==", flush=True)
        print_trial(session, trial_id, is_following=args.follow)
