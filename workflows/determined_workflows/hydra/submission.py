"""Turns a composition into one experiment: its configuration, its context, and what its tasks run."""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from determined.client.session import Session
from determined.context import pack
from determined_workflows.composed_experiment import completed, create, refuse_composed
from determined_workflows.hydra import hyperparameters
from determined_workflows.hydra.composer.secrets import without_in_override
from determined_workflows.hydra.composition import Composition
from determined_workflows.hydra.launcher_settings import LauncherSettings
from determined_workflows.hydra.override_grammar import is_of_hydra, quoted
from determined_workflows.hydra.project import TASK_FOLDER, Project

METRIC = "return_value"
NAME = "hydra.yaml"
_ENVIRONMENTS = ("environment=", "environment.image", "environment.pip", "environment.venv")
_TASK_FILES = {
    "run_job.py": "run_job.py",
    "det_hydra_result.py": "det_hydra_result.py",
    "task_launchers.py": "hydra_plugins/det_task_launchers.py",
}


@dataclass(frozen=True)
class Submission:
    """What is sent to the master; ``warnings``: lines for the user."""

    config: str
    jobs: dict[str, Any] = field(repr=False)
    project: Project
    warnings: list[str]
    files: list[Path] = field(default_factory=list)
    """Files and folders that travel beside the jobs, such as a checkpoint to continue from."""


def prepare(
    composition: Composition,
    project: Project,
    settings: LauncherSettings,
    changes: Sequence[str] = (),
    *,
    files: Sequence[Path] = (),
    is_checked: bool = True,
) -> Submission:
    """Returns the experiment of a composition with ``changes`` (``key.path=value``); sends nothing.

    If not ``is_checked``, only the master checks a configuration that has no changes.

    The jobs use the Python environment of the composition, if no change names another. Raises ConfigError if the
    configuration is wrong, or if a change sets what the composition sets.
    """
    refuse_composed(changes, origin="the composition; use an override")
    document = experiment_config(composition, settings)
    if not any(each.startswith(_ENVIRONMENTS) for each in changes):
        document["environment"] = {"image": f"venv:{composition.python}"}
    text, warnings = completed(document, changes, name=NAME, title=str(composition.script), is_checked=is_checked)
    jobs = {
        "script": project.script,
        "module": composition.module,
        "working_folder": project.working_folder,
        "import_folders": project.import_folders,
        "setup": settings.setup,
        "timeout_min": settings.timeout_min,
        "jobs": [list(_arguments(composition, project, number)) for number in range(len(composition.jobs))],
    }
    notes = [*filter(None, [warnings]), *(f"warning: {each}" for each in project.warnings)]
    return Submission(text, jobs, project, notes, list(files))


def experiment_config(composition: Composition, settings: LauncherSettings) -> dict[str, Any]:
    """Returns the configuration of the experiment: one trial for a run, a list search for a multirun."""
    shared, own = hyperparameters.split(composition.jobs)
    # The name of the job is the default of the launcher.
    given = settings.name if settings.name != composition.job_name else None
    config: dict[str, Any] = {
        "name": given or composition.name,
        "entrypoint": f"python3 -S {TASK_FOLDER}/run_job.py",  # it needs no installed package
        "hyperparameters": shared,
        "searcher": {"name": "list", "metric": METRIC, "trials": own},
        "resources": {"slots_per_trial": settings.slots},
        "max_restarts": 0,
        "labels": ["hydra"],
    }
    if settings.comment:
        config["description"] = settings.comment
    if settings.pool:
        config["resources"]["resource_pool"] = settings.pool
    if settings.max_concurrent is not None:
        config["searcher"]["max_concurrent_trials"] = settings.max_concurrent
    if not composition.is_sweep:
        own[0][hyperparameters.OF_JOB]["overrides"] = " ".join(map(without_in_override, composition.overrides))
        config["hyperparameters"] = shared | own[0]
        config["searcher"] = {"name": "single", "metric": METRIC}
    return config


def submit(session: Session, submission: Submission, *, is_paused: bool = False) -> tuple[int, list[str]]:
    """Creates the experiment and returns its id with notes about links and files that were left out of the context.

    Raises ConfigError with what the master finds wrong, and ContextError if the folder cannot be packed.
    """
    with _task_folder(submission) as folder:
        packed = pack(submission.project.folder, [folder], exclude=[*submission.project.excludes, f"/{TASK_FOLDER}/"])
    return create(session, submission.config, packed, name=NAME, is_paused=is_paused), packed.notes


@contextmanager
def _task_folder(submission: Submission) -> Iterator[Path]:
    with TemporaryDirectory() as above:
        folder = Path(above, TASK_FOLDER)
        folder.mkdir()
        for name, target in _TASK_FILES.items():
            (folder / target).parent.mkdir(exist_ok=True)
            shutil.copy(Path(__file__).with_name("task") / name, folder / target)
        (folder / "jobs.json").write_text(json.dumps(submission.jobs, indent=1), encoding="utf-8")
        for path in submission.files:
            (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / path.name)
        yield folder


def _arguments(composition: Composition, project: Project, number: int) -> Iterator[str]:
    """Yields the arguments of a job.

    The folder of its results is fixed now, so that a job that was paused finds it. Below the project of this machine it
    becomes a folder below that of the task, unless it was written as an absolute path.
    """

    def folder(section: str, path: str) -> str:
        return quoted(project.in_task(path) if section in composition.moving_folders else path)

    yield from composition.flags
    overrides = composition.overrides
    if composition.is_sweep:
        yield from filter(is_of_hydra, overrides)
        yield from composition.jobs[number].overrides
        place = composition.jobs[number].number
        yield from (f"hydra.job.num={place}", f"hydra.job.id='{place}'")
        if composition.sweep_dir is not None:
            yield f"hydra.sweep.dir={folder('sweep', composition.sweep_dir)}"
        yield "hydra.run.dir='${hydra.sweep.dir}/${hydra.sweep.subdir}'"
    else:
        yield from overrides
        if composition.run_dir is not None:
            yield f"hydra.run.dir={folder('run', composition.run_dir)}"
    yield "hydra.mode=RUN"
