"""The project of an RLHF experiment: a folder with ``experiments``, ``api``, ``base`` and ``apps``, and its modules."""

import getpass
import re
import traceback
from pathlib import Path

from determined.errors import ConfigError
from determined_workflows.rlhf.task import config as api
from determined_workflows.rlhf.task import project_modules
from determined_workflows.rlhf.task.experiment_error import ExperimentError
from determined_workflows.rlhf.task.prepare import PreparedExperiment, prepare
from determined_workflows.rlhf.task.registry import unknown_name

RUNS_FOLDER = "runs"


def load(folder: Path) -> None:
    """Imports the modules of a project, which register its experiments, data and models.

    Raises ConfigError, with the user's file and line, if that fails.
    """
    if not (folder / "experiments").is_dir():
        raise ConfigError(
            f"{folder.resolve()} has no folder experiments, so it is no RLHF project; `det rlhf init FOLDER` writes one"
        )
    name = project_modules.EXPERIMENTS
    try:
        for module in project_modules.import_project(folder):
            name = module
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{name} cannot be imported: {describe(error, folder)}") from None


def build(experiment: str, trial: str, folder: Path) -> PreparedExperiment:
    """Returns an experiment that has passed every check. Raises ConfigError for whatever is wrong."""
    if experiment not in api.ALL_EXPERIMENT_CLASSES:
        raise ConfigError(unknown_name("experiment", experiment, api.ALL_EXPERIMENT_CLASSES))
    try:
        return prepare(experiment, trial)
    except ExperimentError as error:
        raise ConfigError(f"experiment {experiment!r} cannot run:\n" + "\n".join(error.problems)) from None
    except Exception as error:
        raise ConfigError(f"experiment {experiment!r} cannot be built: {describe(error, folder)}") from None


def matching(pattern: str) -> list[str]:
    """Returns the names of registered experiments that a regular expression matches anywhere. Raises ConfigError."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"-r {pattern!r} is no regular expression: {error}") from None
    return [name for name in sorted(api.ALL_EXPERIMENT_CLASSES) if expression.search(name)]


def default_trial() -> str:
    """Returns the name of a trial that was not given: ``test-`` and the user's name."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a uid without a name, as in some containers
        name = "user"
    return "test-" + (re.sub(r"[^A-Za-z0-9.-]+", "-", name) or "user")


def run_folder(folder: Path, experiment: str, trial: str) -> Path:
    """Returns the folder in which the runs of a trial on this machine keep their files."""
    return folder / RUNS_FOLDER / experiment / trial


def describe(error: BaseException, folder: Path) -> str:
    """Returns the error with the last line of the project that it passed through."""
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename:
        return f"{text.split(' (')[0]} ({_shown(error.filename, folder)}:{error.lineno}:{error.offset})"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_below(f.filename, folder)]
    return f"{text} ({_shown(frames[-1].filename, folder)}:{frames[-1].lineno})" if frames else text


def _is_below(path: str, folder: Path) -> bool:
    return Path(path).resolve().is_relative_to(folder.resolve())


def _shown(path: str, folder: Path) -> str:
    return str(Path(path).resolve().relative_to(folder.resolve())) if _is_below(path, folder) else path
