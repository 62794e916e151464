"""``det hydra run`` and ``det hydra continue``."""

import os
import shlex
import subprocess
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from determined.errors import ConfigError
from determined_cli import connection
from determined_cli.failures import counted
from determined_cli.hydra.check import compose
from determined_cli.main import say
from determined_workflows.hydra import composition, launcher_settings, project, resume, submission
from determined_workflows.hydra.composition import Composition
from determined_workflows.hydra.project import Project


def run(args: Namespace) -> int:
    """Submits the composition as one experiment."""
    found = compose(args)
    for warning in launcher_settings.warnings(found.launcher):
        say(f"warning: {warning}")
    return _submit(args, found, project.find(found))


def continue_run(args: Namespace) -> int:
    """Continues the jobs of a folder: here, by Slurm, or on the cluster."""
    where = "slurm" if args.use_slurm else args.on
    if where != "det" and (args.config or args.follow or args.paused):
        raise ConfigError("--config, --follow and --paused need --on det")
    found = resume.plan(
        Path(args.folder),
        step=args.checkpoint_step,
        new_overrides=args.new_overrides,
        script=Path(args.script) if args.script else None,
        python=args.python,
        is_for_slurm=where == "slurm",
    )
    if found.note:
        say(f"note: {found.note}")
    for job in found.jobs:
        begins = f"continues from {job.checkpoint.name}" if job.checkpoint else "begins from the start"
        say(f"{job.source}: {begins}")
    if where == "det":
        return _continue_on_cluster(args, found)
    python = args.python or composition.active_python()
    failed = 0
    for job in found.jobs:
        command, path = job.command(python), _import_path(job)
        setting = f"PYTHONPATH={shlex.quote(path)} " if path else ""
        print(f"cd {shlex.quote(str(job.working_folder))} && {setting}{shlex.join(command)}", flush=True)
        environ = {**os.environ, "PYTHONPATH": path} if path else None
        if not args.dry_run:
            failed += subprocess.run(command, cwd=job.working_folder, env=environ, check=False).returncode != 0
    if failed:
        say(f"{failed} of {counted(len(found.jobs), 'job')} failed")
    return 1 if failed else 0


def _import_path(job: resume.Continuation) -> str | None:
    """Returns the ``PYTHONPATH`` of a command, if it needs another than that of the shell."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    needed = [each for each in job.import_folders if each not in map(os.path.abspath, filter(None, given))]
    return os.pathsep.join([*filter(None, given), *needed]) if needed else None


def _continue_on_cluster(args: Namespace, plan: resume.Plan) -> int:
    first = plan.jobs[0]
    bare = plan.composition or composition.compose(
        first.target, first.arguments, python=args.python, working_folder=first.working_folder
    )
    folder = project.find(bare)
    with TemporaryDirectory() as above:
        files = [resume.copy_checkpoints(plan, Path(above))]
        return _submit(args, resume.on_cluster(plan, folder, args.python), folder, files)


def _submit(args: Namespace, found: Composition, folder: Project, files: Sequence[Path] = ()) -> int:
    settings = launcher_settings.read(found.launcher)
    prepared = submission.prepare(found, folder, settings, args.config, files=files)
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
    if found.is_sweep:
        say(f"{counted(len(found.jobs), 'job')}; `det experiment list-trials {experiment_id}` shows them")
    if not args.follow:
        return 0
    from determined_cli.experiment.follow import follow

    return follow(session, experiment_id)
