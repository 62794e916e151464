"""``det rlhf init``, and ``status``, ``logs`` and ``stop`` of a trial."""

import sys
from argparse import Namespace
from pathlib import Path

from determined.client import experiments, lifecycle
from determined.client.session import Session
from determined.errors import Conflict, NotFound
from determined_cli.output.states import display_state, has_ended, without_prefix
from determined_cli.terminal.messages import INTERRUPTED, say
from determined_workflows import supervised_run
from determined_workflows.rlhf import example, on_slurm, project, run_record
from determined_workflows.rlhf.run_record import Record
from determined_workflows.runner.logs import print_files


def init(args: Namespace) -> None:
    """Writes the example project."""
    for path in example.init(Path(args.folder)):
        say(f"wrote {path}")
    inside = "" if args.folder == "." else f"cd {args.folder}; "
    say(f"`{inside}python3 -m apps.main start -e {example.NAME} -f first --mode local` runs it here")


def status(args: Namespace) -> None:
    """Prints one line."""
    folder, record = _read(args)
    if record.experiment is not None:
        state = without_prefix(display_state(experiments.get(_session(args, record), record.experiment))).lower()
        print(f"{state}  experiment {record.experiment} of {record.master}")
    elif record.target == "slurm":
        job = on_slurm.observe(record)
        print(f"{job.state.lower()}  job {job.id} of Slurm {job.detail}".rstrip())
    else:
        pid = supervised_run.process(folder)
        state = supervised_run.state(folder) or "not started"
        if pid is None and state == "running":
            state = "interrupted"
        print(f"{state}  in {folder}" + (f" (process {pid})" if pid else ""))


def logs(args: Namespace) -> int:
    """Prints the output of a trial. With ``--follow`` returns 130 if Ctrl-C ended it."""
    folder, record = _read(args)
    try:
        if record.experiment is not None:
            _print_log(_session(args, record), record.experiment, is_following=args.follow)
            return 0
        path = on_slurm.output(record) if record.target == "slurm" else supervised_run.console(folder)
        if not path.is_file():
            raise NotFound(f"{folder} has no output yet")
        print_files(lambda: [path], lambda: not args.follow or not _is_running(folder, record))
    except KeyboardInterrupt:
        say("\ndetached; the trial goes on")
        return INTERRUPTED
    return 0


def stop(args: Namespace) -> None:
    """Ends a trial. Raises Conflict if it does not run."""
    folder, record = _read(args)
    if record.experiment is not None:
        session = _session(args, record)
        if has_ended(experiments.get(session, record.experiment)["state"]):
            raise Conflict(f"experiment {record.experiment} of {record.master} has ended already")
        lifecycle.steer(session, record.experiment, "kill" if args.now else "cancel")
        say(f"experiment {record.experiment} is ending")
    elif record.target == "slurm":
        say(f"ended jobs of Slurm: {', '.join(on_slurm.stop(record))}")
    elif not supervised_run.stop(folder, is_killing=args.now):
        raise Conflict(f"nothing runs in {folder}")


def _read(args: Namespace) -> tuple[Path, Record]:
    folder = project.run_folder(Path(args.project), args.experiment, args.trial or project.default_trial())
    return folder, run_record.read(folder)


def _session(args: Namespace, record: Record) -> Session:
    from determined_cli import connection

    args.options.master = args.options.master or record.master
    return connection.connect(args.options)


def _is_running(folder: Path, record: Record) -> bool:
    if record.target == "slurm":
        return on_slurm.observe(record).state in ("PENDING", "RUNNING")
    return supervised_run.process(folder) is not None


def _print_log(session: Session, experiment_id: int, *, is_following: bool) -> None:
    from determined_cli import logs as trial_logs

    trial_id = trial_logs.find_first_trial(session, experiment_id)
    if trial_id is None:
        raise NotFound(f"experiment {experiment_id} has no output yet; it has no trial")
    trial_logs.print_trial(session, trial_id, is_following=is_following)
    sys.stdout.flush()
