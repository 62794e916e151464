"""``det hydra retry``: rebuilds the commands of a folder's unfinished jobs, so that they go on from a checkpoint."""

import os
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from determined.errors import ConfigError, Conflict
from determined_workflows.hydra import run_folder, slurm_queue
from determined_workflows.hydra.composer.app import declared
from determined_workflows.hydra.composition import Composition, CompositionError, Job, as_module, compose
from determined_workflows.hydra.override_grammar import key_of, quoted
from determined_workflows.hydra.project import TASK_FOLDER, Project
from determined_workflows.hydra.run_folder import RunFolder

FOLDER_KEY, STEP_KEY = "resume_from_folder", "checkpoint_step"
NEWEST = -1
SLURM_LAUNCHER = "hydra/launcher=slurm_launcher"
RESUME = "resume"


@dataclass(frozen=True)
class Continuation:
    """A job to run again. ``checkpoint`` is None if it has none, and begins from the start."""

    composition: Composition
    arguments: list[str]
    source: Path
    checkpoint: Path | None
    job: Job | None = None

    @property
    def target(self) -> Path:
        """Returns what is started: the script, or the name of its module."""
        return Path(self.composition.module) if self.composition.module else self.composition.script

    @property
    def working_folder(self) -> Path:
        return self.composition.working_folder

    def command(self, python: str) -> list[str]:
        """Returns the command for the working folder."""
        if self.composition.module:
            return [python, "-m", self.composition.module, *self.arguments]
        return [python, os.path.relpath(self.composition.script, self.working_folder), *self.arguments]

    @property
    def import_folders(self) -> list[str]:
        """Returns the folders that the command needs in ``PYTHONPATH``, beside those of the Python environment."""
        return [str(each.path) for each in self.composition.import_folders if each.is_used and not each.is_installed]


@dataclass(frozen=True)
class ResumePlan:
    """What is left to do. ``note``: a line for the user, such as that finished jobs cannot be told.

    ``checked`` is the first job with its continuation, as the launcher of the target composes it.
    """

    jobs: list[Continuation]
    run: RunFolder
    changes: list[str]
    checked: Composition
    composition: Composition | None = None
    note: str | None = None


def plan(
    folder: Path,
    *,
    step: int = NEWEST,
    new_overrides: str = "",
    script: Path | None = None,
    python: str | None = None,
    is_for_slurm: bool = False,
) -> ResumePlan:
    """Returns the jobs of a folder that are to be continued.

    Raises NotFound if the folder, the checkpoint or the script does not exist; CompositionError if the application has
    no keys for a continuation, or if its configuration has become invalid; Conflict if every job is finished.
    """
    run = run_folder.read(folder.resolve())
    if is_for_slurm:
        slurm_queue.require_slurm()
    target, file = _target(run, script)
    config_name = next((name for _, name in declared(file)), None)
    own = [*run.flags(config_name), *run.hydra_overrides]
    try:
        changes = shlex.split(new_overrides)
    except ValueError as error:
        raise ConfigError(f"--new_overrides {new_overrides!r}: {error}") from None
    if run.is_multirun:
        return _multirun(run, target, own, changes, step, python, is_for_slurm=is_for_slurm)
    checkpoint = run_folder.find_checkpoint(run.path, step)
    if checkpoint is None:
        raise ConfigError(f"{run.path} has no checkpoint to continue from; run it again instead")
    arguments = [*own, *_without_resume(run.overrides), *resume_overrides(str(run.path), step), *changes]
    slurm = ["--multirun", SLURM_LAUNCHER] if is_for_slurm else ["hydra.mode=RUN"]
    composition = _check(target, [*slurm, *arguments], python, run.working_folder)
    note = f"{run.path} is finished ({run_folder.RESULT}); it trains further" if _is_finished(run.path) else None
    job = Continuation(composition, [*slurm, *arguments], run.path, checkpoint)
    return ResumePlan([job], run, changes, composition, note=note)


def _multirun(
    run: RunFolder,
    script: Path,
    own: list[str],
    changes: list[str],
    step: int,
    python: str | None,
    *,
    is_for_slurm: bool,
) -> ResumePlan:
    composition = compose(
        script, ["--multirun", *own, *run.overrides], python=python, working_folder=run.working_folder
    )
    writes_results = any(_is_finished(_folder(run, job)) for job in composition.jobs)
    left = [job for job in composition.jobs if not _is_finished(_folder(run, job))]
    if not left:
        raise Conflict(f"every job of {run.path} is finished")
    launcher = [SLURM_LAUNCHER] if is_for_slurm else []
    jobs, checked = [], composition
    for job in left:
        folder = _folder(run, job)
        checkpoint = run_folder.find_checkpoint(folder, step) if folder.is_dir() else None
        resume = resume_overrides(str(folder), step) if checkpoint else []
        place = ["hydra.mode=RUN", f"hydra.run.dir={quoted(str(folder))}", f"hydra.job.num={job.number}"]
        if is_for_slurm:
            place = [
                *launcher,
                f"hydra.sweep.dir={quoted(str(folder.parent))}",
                f"hydra.sweep.subdir={quoted(folder.name)}",
            ]
        arguments = [*own, *_without_resume(job.overrides), *resume, *changes]
        if job is left[0]:
            words = [*arguments, *resume_overrides(str(folder), step), *launcher]
            checked = _check(script, words, python, run.working_folder)
        flag = ["--multirun"] if is_for_slurm else []  # before the overrides, between which argparse takes no flag
        jobs.append(Continuation(composition, [*flag, *arguments, *place], folder, checkpoint, job))
    note = None
    if not writes_results:
        note = f"no job of {run.path} has a {run_folder.RESULT}, so that finished jobs cannot be told: all jobs run"
    return ResumePlan(jobs, run, changes, checked, composition, note)


def resume_overrides(folder: str, step: int) -> list[str]:
    """Returns the overrides that make an application continue."""
    return [f"{FOLDER_KEY}={quoted(folder)}", f"{STEP_KEY}={step}"]


def on_cluster(plan: ResumePlan, project: Project, python: str | None = None) -> Composition:
    """Returns the continuation as a composition for the cluster, where checkpoints lie in the folder of the task."""
    first = plan.jobs[0]
    if plan.composition is None:
        kept = [each for each in first.arguments if not _is_resume(each)]
        arguments = [*kept, *resume_overrides(_in_task(project, plan.run, first), NEWEST)]
        return compose(first.target, arguments, python=python, working_folder=first.working_folder)
    jobs = []
    for each in plan.jobs:
        assert each.job is not None
        resume = resume_overrides(_in_task(project, plan.run, each), NEWEST) if each.checkpoint else []
        overrides = [*_without_resume(each.job.overrides), *resume, *plan.changes]
        jobs.append(replace(each.job, overrides=overrides))
    return replace(plan.composition, jobs=jobs)


def copy_checkpoints(plan: ResumePlan, folder: Path) -> Path:
    """Copies the checkpoints to continue from, and what Hydra wrote beside them, below ``folder/resume``."""
    for job in plan.jobs:
        if job.checkpoint is not None:
            target = folder / RESUME / _kept_below(plan.run, job)
            shutil.copytree(job.source / ".hydra", target / ".hydra")
            path = target / job.checkpoint.relative_to(job.source)
            path.parent.mkdir(parents=True, exist_ok=True)
            (shutil.copytree if job.checkpoint.is_dir() else shutil.copy)(job.checkpoint, path)
    (folder / RESUME).mkdir(exist_ok=True)
    return folder / RESUME


def _in_task(project: Project, run: RunFolder, continuation: Continuation) -> str:
    path = Path(TASK_FOLDER, RESUME, _kept_below(run, continuation))
    return os.path.relpath(path, project.working_folder)


def _kept_below(run: RunFolder, continuation: Continuation) -> str:
    """Returns where the checkpoint of a job lies in the context.

    ``hydra.sweep.subdir`` may give several jobs folders of one name, each in another folder.
    """
    source = continuation.source
    if source == run.path or continuation.job is None:
        return source.name
    return str(source.relative_to(run.path) if source.is_relative_to(run.path) else continuation.job.number)


def _folder(run: RunFolder, job: Job) -> Path:
    return run.path / (job.subfolder or str(job.number))


def _is_finished(folder: Path) -> bool:
    return (folder / run_folder.RESULT).is_file()


def _without_resume(overrides: Sequence[str]) -> Iterator[str]:
    return (each for each in overrides if not _is_resume(each))


def _is_resume(override: str) -> bool:
    return key_of(override) in (FOLDER_KEY, STEP_KEY)


def _target(run: RunFolder, script: Path | None) -> tuple[Path, Path]:
    """Returns what is started, a script or the name of a module, and its file."""
    module = as_module(script) if script is not None else None
    if module is not None:
        for file in (f"{module.replace('.', '/')}.py", f"{module.replace('.', '/')}/__main__.py"):
            if (run.working_folder / file).is_file():
                return Path(module), run.working_folder / file
        raise ConfigError(f"{module}: no such file, and no module below {run.working_folder}")
    if script is not None and not script.is_file():
        raise ConfigError(f"{script}: no such file")
    found = (script or run_folder.find_script(run)).resolve()
    module = run_folder.module_name(found, run.working_folder)
    return Path(module) if module else found, found


def _check(script: Path, arguments: list[str], python: str | None, working_folder: Path) -> Composition:
    try:
        return compose(script, arguments, python=python, working_folder=working_folder)
    except CompositionError as error:
        if any(f'unknown key "{key}"' in error.message for key in (FOLDER_KEY, STEP_KEY)):
            raise CompositionError(
                f"{script} cannot be continued: its configuration has no keys {FOLDER_KEY} and {STEP_KEY}. Add them "
                f"with the defaults null and -1, and read the checkpoint where {FOLDER_KEY} is set"
            ) from None
        raise
