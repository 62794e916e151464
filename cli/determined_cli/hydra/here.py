"""Runs the jobs of `det hydra run` and `retry` on this machine, or the launcher that submits them to Slurm."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from determined.errors import DeterminedError
from determined_cli.failures import counted
from determined_cli.terminal.messages import say
from determined_workflows import supervised_run
from determined_workflows.hydra import composition as compositions
from determined_workflows.hydra import run_record
from determined_workflows.hydra.composition import Composition
from determined_workflows.hydra.override_grammar import key_of, quoted
from determined_workflows.hydra.resume import Continuation, ResumePlan
from determined_workflows.hydra.run_record import Record


def run(found: Composition, target: str, *, python: str | None, is_dry_run: bool) -> int:
    """Runs a composition, and returns 0, 1 if it failed, or the code of the signal that ended it."""
    folder = _folder(found)
    job = Continuation(found, _in_folder(found, found.arguments), folder, None)
    return _run([job], folder, target, len(found.jobs), python, is_dry_run=is_dry_run)


def retry(plan: ResumePlan, target: str, *, python: str | None, is_dry_run: bool) -> int:
    """Runs the unfinished jobs of a folder, and returns 0, 1 if one failed, or the code of the signal that ended them.

    The jobs of a multirun run in their folders; a single run gets a new folder.
    """
    jobs, folder, count = plan.jobs, plan.run.path, len(plan.jobs)
    if plan.composition is None:
        (job,) = jobs
        folder = _folder(job.composition)
        jobs = [Continuation(job.composition, _in_folder(job.composition, job.arguments), folder, job.checkpoint)]
    else:
        count = len(plan.composition.jobs)
    return _run(jobs, folder, target, count, python, is_dry_run=is_dry_run)


def _run(
    jobs: Sequence[Continuation], folder: Path, target: str, count: int, python: str | None, *, is_dry_run: bool
) -> int:
    lines = [_line(job, python or compositions.active_python()) for job in jobs]
    if is_dry_run:
        print("\n".join(lines))
        return 0
    slurm_folder = _slurm_folder(jobs[0].composition, folder) if target == "slurm" else None
    failed = 0
    with supervised_run.held(run_record.kept_in(folder), stop=f"det hydra stop {shown(folder)}") as here:
        try:
            Record(target, count, slurm_folder=slurm_folder).write(folder)
        except OSError as error:
            raise DeterminedError(f"{folder} cannot be written: {error.strerror}") from None
        for job, line in zip(jobs, lines, strict=True):
            here.say(line)
            # The only job of a run has its state in the run folder; those of a multirun that goes on have their own.
            own = job.source if len(jobs) > 1 or job.job is not None else folder
            failed += not here.run(line, run_record.kept_in(own), is_submission=target == "slurm")
            if here.ended_by is not None:
                break
    if here.ended_by is not None:
        say(f"the run was ended by a signal; `det hydra status {shown(folder)}` shows its jobs")
        return 128 + here.ended_by
    if failed:
        what = f"{failed} of {counted(len(jobs), 'job')}" if len(jobs) > 1 else "the run"
        say(f"{what} failed; `det hydra logs {shown(folder)}` prints the output, `det hydra status` the states")
    return 1 if failed else 0


def shown(folder: Path) -> str:
    """Returns a folder as a word of a command line, relative to the working folder if it is below it."""
    path = os.path.abspath(folder)
    relative = os.path.relpath(path)
    return shlex.quote(path if relative.startswith("..") else relative)


def _line(job: Continuation, python: str) -> str:
    path = _import_path(job)
    setting = f"PYTHONPATH={shlex.quote(path)} " if path else ""
    return f"cd {shlex.quote(str(job.working_folder))} && {setting}{shlex.join(job.command(python))}"


def _import_path(job: Continuation) -> str | None:
    """Returns the ``PYTHONPATH`` of a command, if it needs another than that of the shell."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    needed = [each for each in job.import_folders if each not in map(os.path.abspath, filter(None, given))]
    return os.pathsep.join([*filter(None, given), *needed]) if needed else None


def _folder(found: Composition) -> Path:
    folder = run_record.folder_of(found)
    if folder is None:
        raise DeterminedError(f"{found.script} has no folder for its results; set hydra.run.dir")
    return folder


def _in_folder(found: Composition, arguments: Sequence[str]) -> list[str]:
    """Returns the arguments with the folder of the results, which may be named after the time, fixed."""
    key, folder = ("hydra.sweep.dir", found.sweep_dir) if found.is_sweep else ("hydra.run.dir", found.run_dir)
    if folder is None or any(key_of(each) == key and "${" not in each for each in arguments):
        return list(arguments)
    return [*arguments, f"{key}={quoted(folder)}"]


def _slurm_folder(found: Composition, folder: Path) -> str:
    """Returns the folder where the launcher puts the scripts of its jobs: the part before the number of the job."""
    named = str(found.launcher.get("submitit_folder") or folder / ".submitit")
    path = found.working_folder / named.partition("%")[0]
    return os.path.abspath(path)
