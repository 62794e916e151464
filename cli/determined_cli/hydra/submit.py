"""``det hydra run`` and ``det hydra retry``: on the cluster, and the choice of another target."""

import os
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from determined.errors import ConfigError, Conflict, DeterminedError
from determined_cli import connection
from determined_cli.failures import counted
from determined_cli.hydra import here
from determined_cli.hydra.check import compose
from determined_cli.terminal.messages import say
from determined_workflows import site_profile, supervised_run
from determined_workflows.hydra import (
    composition,
    launcher_settings,
    project,
    resume,
    run_record,
    run_status,
    site_settings,
    slurm_queue,
    submission,
)
from determined_workflows.hydra.composition import Composition
from determined_workflows.hydra.override_grammar import key_of
from determined_workflows.hydra.project import Project
from determined_workflows.hydra.run_record import Record


def run(args: Namespace) -> int:
    """Runs the composition: as one experiment, on this machine, or by Slurm."""
    _check_flags(args, args.on)
    if args.on == "slurm":
        slurm_queue.require_slurm()
        args.multirun = True
        if all(key_of(each) != "hydra/launcher" for each in args.overrides):
            args.overrides = [*args.overrides, resume.SLURM_LAUNCHER]
    composed = compose(args)
    if args.on == "slurm" and not (composed.launcher_target or "").endswith(".SlurmLauncher"):
        raise ConfigError(
            f"{composed.launcher_target} does not submit to Slurm; leave out hydra/launcher, or use --on local"
        )
    if args.on == "slurm":
        composed = replace(composed, arguments=[*composed.arguments, *_site_overrides(args, composed)])
    if args.on != "det":
        return here.run(composed, args.on, python=args.python, is_dry_run=args.dry_run)
    for warning in launcher_settings.warnings(composed.launcher):
        say(f"warning: {warning}")
    return _submit(args, composed, project.find(composed))


def retry(args: Namespace) -> int:
    """Continues the unfinished jobs of a folder where they ran before, or where ``--on`` says."""
    folder = Path(args.folder)
    record = run_record.read(folder)
    where = args.on or (record.target if record else "local")
    _check_flags(args, where)
    if record is not None and record.experiment is not None and args.on in (None, "det"):
        return _continue_experiment(args, record)
    if record is not None and record.target == "det" and not (folder / ".hydra").is_dir():
        raise ConfigError(f"the files of {folder} are on the cluster, in experiment {record.experiment}; use --on det")
    _refuse_if_running(folder, record)
    plan = resume.plan(
        folder,
        step=args.checkpoint_step,
        new_overrides=args.new_overrides,
        script=Path(args.script) if args.script else None,
        python=args.python,
        is_for_slurm=where == "slurm",
    )
    if plan.note:
        say(f"note: {plan.note}")
    for job in plan.jobs:
        begins = f"continues from {job.checkpoint.name}" if job.checkpoint else "begins from the start"
        say(f"{job.source}: {begins}")
    if where == "det":
        return _continue_on_cluster(args, plan)
    if where == "slurm":
        given = _site_overrides(args, plan.checked)
        plan = replace(plan, jobs=[replace(job, arguments=[*job.arguments, *given]) for job in plan.jobs])
    return here.retry(plan, where, python=args.python, is_dry_run=args.dry_run)


def _check_flags(args: Namespace, where: str) -> None:
    if where != "det" and (args.config or args.follow or args.paused):
        raise ConfigError("--config, --follow and --paused need --on det")
    if where != "slurm" and args.site is not None:
        raise ConfigError("--site needs --on slurm: only jobs of Slurm use SITE.yaml")


def _site_overrides(args: Namespace, found: Composition) -> list[str]:
    """Returns what the site's profile gives to the launcher, and says so."""
    site = site_profile.find(args.site, found.working_folder, os.environ)
    given = site_settings.of(site, found)
    if given.summary is not None:
        say(given.summary)
    return given.overrides


def _refuse_if_running(folder: Path, record: Record | None) -> None:
    """Raises Conflict if jobs of the folder run or wait."""
    pid = supervised_run.process(run_record.kept_in(folder))
    if pid is not None:
        raise Conflict(
            f"process {pid} still runs in {folder}; wait, or end it by `det hydra stop {here.shown(folder)}`"
        )
    try:
        queue = run_status.queue_of(folder, record)
    except DeterminedError as error:
        say(f"warning: {error.message}; jobs of Slurm may still run")
        return
    if queue:
        listed = ", ".join(job.id for job in queue)
        raise Conflict(
            f"jobs of Slurm still run or wait: {listed}; wait, or end them by `det hydra stop {here.shown(folder)}`"
        )


def _continue_experiment(args: Namespace, record: Record) -> int:
    """Continues the experiment that the run created, whose checkpoints are on the cluster."""
    if args.new_overrides or args.checkpoint_step != resume.NEWEST or args.paused or args.script:
        raise ConfigError(
            f"experiment {record.experiment} continues with its own overrides from its newest checkpoints; use "
            "--config for its settings, and leave out --new_overrides, --checkpoint_step, --script and --paused"
        )
    if args.dry_run:
        print(f"det experiment continue {record.experiment}")
        return 0
    from determined_cli.experiment import continuation

    args.options.master = args.options.master or record.master
    args.experiment_id, args.config_file = record.experiment, None
    return continuation.continue_(args)


def _continue_on_cluster(args: Namespace, plan: resume.ResumePlan) -> int:
    first = plan.jobs[0]
    bare = plan.composition or composition.compose(
        first.target, first.arguments, python=args.python, working_folder=first.working_folder
    )
    folder = project.find(bare)
    with TemporaryDirectory() as above:
        files = [resume.copy_checkpoints(plan, Path(above))]
        return _submit(args, resume.on_cluster(plan, folder, args.python), folder, files)


def _submit(args: Namespace, composed: Composition, folder: Project, files: Sequence[Path] = ()) -> int:
    settings = launcher_settings.read(composed.launcher)
    prepared = submission.prepare(composed, folder, settings, args.config, files=files)
    for warning in prepared.warnings:
        say(warning)
    if args.dry_run:
        print(prepared.config, end="")
        return 0
    session = connection.connect(args.options)
    experiment_id, notes = submission.submit(session, prepared, is_paused=args.paused)
    for note in notes:
        say(note)
    print(f"Created experiment {experiment_id}", flush=True)
    _keep_record(composed, Record("det", len(composed.jobs), session.master, experiment_id))
    if not args.follow:
        return 0
    from determined_cli.experiment.follow import follow

    return follow(session, experiment_id)


def _keep_record(found: Composition, record: Record) -> None:
    """Notes the experiment in the folder that the run would have on this machine."""
    jobs = counted(record.jobs, "job")
    other_way = f"{jobs}; `det experiment list-trials {record.experiment}` shows them"
    run = run_record.folder_of(found)
    if run is None:
        say(other_way)
        return
    try:
        record.write(run)
    except OSError as error:  # an absolute folder may exist on the agents only
        say(f"{other_way} ({run} is not kept here: {error.strerror})")
    else:
        say(f"{jobs}; `det hydra status {here.shown(run)}` shows {'it' if record.jobs == 1 else 'them'}")
