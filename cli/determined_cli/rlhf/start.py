"""``det rlhf check``, ``run`` and ``retry``: build the experiment, and start its trial where it was asked."""

import json
import shutil
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from determined.errors import ConfigError, MasterUnreachable, Unauthenticated
from determined_cli import connection
from determined_cli.terminal.messages import say
from determined_workflows.rlhf import composition, local_run, project, run_record
from determined_workflows.rlhf.composition import Composition
from determined_workflows.rlhf.run_record import Record

_NO_SLURM = (
    "--on slurm needs one of two: a cluster that you are logged in to and that has a pool on Slurm (`det up --pool "
    "slurm`), or sbatch on this machine; --on local runs it here, --on det in the default pool of the cluster"
)


def check(args: Namespace) -> int:
    """Builds one experiment or all, and prints their workers. Returns 1 if one is wrong."""
    folder = Path(args.project)
    project.load(folder)
    names = [args.experiment] if args.experiment else project.matching("")
    if not names:
        raise ConfigError("the project registers no experiment; call api.config.register_experiment")
    experiments, failed = [], False
    for name in names:
        try:
            built = composition.compose(name, args.trial or project.default_trial(), folder)
        except ConfigError as error:
            if args.experiment:
                raise
            say(error.message)
            failed = True
            continue
        experiments.append(built)
    if args.json:
        print(json.dumps([_as_json(each) for each in experiments], indent=2))
    for each in [] if args.json else experiments:
        print(f"{each.experiment}: {each.summary()}")
        _say_notes(each)
    return int(failed)


def run(args: Namespace) -> int:
    """Starts a trial, and returns its exit code if it runs here or is followed."""
    folder = Path(args.project)
    project.load(folder)
    built = composition.compose(args.experiment, args.trial or project.default_trial(), folder)
    if args.on == "local":
        return _run_here(built, folder, args)
    if args.on == "slurm":
        pool = _slurm_pool(args)
        if pool is None:
            return _submit_job(built, folder, args)
        return _create_experiment(built, folder, args, pool)
    return _create_experiment(built, folder, args, None)


def retry(args: Namespace) -> int:
    """Continues a trial where it ran before, or where ``--on`` says."""
    folder = Path(args.project)
    trial = args.trial or project.default_trial()
    record = run_record.read(project.run_folder(folder, args.experiment, trial))
    args.trial, args.recover_mode = trial, "resume"
    if record.experiment is not None and args.on in (None, "det"):
        from determined_cli.experiment import continuation

        if args.dry_run:
            print(f"det experiment continue {record.experiment}")
            return 0
        args.options.master = args.options.master or record.master
        args.experiment_id, args.config_file = record.experiment, None
        return continuation.continue_(args)
    args.on = args.on or record.target
    return run(args)


def _run_here(built: Composition, folder: Path, args: Namespace) -> int:
    _refuse(args, "config", "image", "retries", "follow", "paused", "partition")
    say(f"{built.experiment} {built.trial} runs on this machine: {built.summary()}")
    _say_notes(built)
    if args.dry_run:
        print(local_run.command(built, folder))
        return 0
    return local_run.run(built, folder, _variables(args))


def _create_experiment(built: Composition, folder: Path, args: Namespace, pool: str | None) -> int:
    from determined_workflows.rlhf import on_cluster

    if args.recover_mode == "resume":
        raise ConfigError(
            f"a new experiment has no earlier state; `det rlhf retry {built.experiment} {built.trial}` continues one "
            "that ran on the cluster"
        )
    config, warnings = composition.experiment_config(
        built,
        changes=args.config,
        pool=pool,
        image=args.image,
        max_restarts=args.retries,
    )
    if warnings:
        say(warnings)
    if args.dry_run:
        print(config, end="")
        return 0
    session = connection.connect(args.options)
    where = f"pool {pool} of {session.master}" if pool else session.master
    say(f"{built.experiment} {built.trial} runs on the cluster, {where}: {built.summary()}")
    _say_notes(built)
    experiment_id, notes = on_cluster.submit(
        session, built, config, folder, variables=_variables(args), is_paused=args.paused
    )
    for note in notes:
        say(note)
    print(f"Created experiment {experiment_id}", flush=True)
    Record("det", session.master, experiment_id).write(project.run_folder(folder, built.experiment, built.trial))
    if not args.follow:
        return 0
    from determined_cli.experiment.follow import follow

    return follow(session, experiment_id)


def _slurm_pool(args: Namespace) -> str | None:
    """Returns the pool on Slurm of the cluster, or None for a job without a master. Raises ConfigError if neither can
    be used."""
    from determined_workflows.rlhf import on_cluster

    try:
        pool = on_cluster.slurm_pool(connection.connect(args.options), args.partition)
    except (MasterUnreachable, Unauthenticated):
        pool = None
    if pool is None and shutil.which("sbatch") is None:
        raise ConfigError(_NO_SLURM)
    return pool


def _submit_job(built: Composition, folder: Path, args: Namespace) -> int:
    from determined_workflows.rlhf import on_slurm

    _refuse(args, "config", "image", "retries", "follow", "paused")
    say(f"{built.experiment} {built.trial} runs as one job of Slurm, without a master: {built.summary()}")
    _say_notes(built, is_job=True)
    prepared = on_slurm.prepare(built, folder, partition=args.partition, say=say)
    if args.dry_run:
        for option in prepared.options:
            print(option.text)
        return 0
    print(f"Submitted batch job {on_slurm.submit(built, folder, _variables(args), prepared)}", flush=True)
    return 0


def _say_notes(built: Composition, *, is_job: bool = False) -> None:
    for note in built.built.notes(is_job=is_job):
        say(f"warning: {note}")


def _variables(args: Namespace) -> Mapping[str, str]:
    """Returns what the workers learn from the flags."""
    return {
        local_run.RECOVER: args.recover_mode,
        "WANDB_MODE": args.wandb_mode,
        local_run.LOG_LEVEL: args.log_level,
    }


def _refuse(args: Namespace, *names: str) -> None:
    """Raises ConfigError for flags that only a cluster has."""
    for name in names:
        if getattr(args, name):
            raise ConfigError(f"--{name} has no effect with --on {args.on}; leave it out")


def _as_json(built: Composition) -> dict[str, object]:
    roles = [{"name": each.name, "count": each.count, "slots": each.slots} for each in built.roles]
    return {"schema_version": 1, "experiment": built.experiment, "slots": built.slots, "roles": roles}
