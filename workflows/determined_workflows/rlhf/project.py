"""The project of an RLHF experiment: a folder with ``experiments``, ``api``, ``base`` and ``apps``, and its modules."""

import getpass
import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from determined.errors import ConfigError
from determined_workflows.rlhf.task import config as api
from determined_workflows.rlhf.task.config import Experiment

MODULES = ("experiments", "impl.data", "impl.model")
"""What a worker imports, in this order; those of ``impl`` may be missing."""
RUNS_FOLDER = "runs"
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*\Z")
MAX_NAME_LENGTH = 100


def load(folder: Path) -> None:
    """Imports the modules of a project, which register its experiments, data and models.

    Raises ConfigError, with the user's file and line, if that fails.
    """
    if not (folder / "experiments").is_dir():
        raise ConfigError(
            f"{folder.resolve()} has no folder experiments, so it is no RLHF project; `det rlhf init FOLDER` writes one"
        )
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
    for name in MODULES:
        if name != "experiments" and _is_missing(name):
            continue
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            raise ConfigError(f"{name} cannot be imported: {describe(error, folder)}") from None


def find(name: str, folder: Path) -> Experiment:
    """Returns the experiment that is registered by this name. Raises ConfigError if it is unknown or wrong."""
    if name not in api.ALL_EXPERIMENT_CLASSES:
        raise ConfigError(unknown(name, sorted(api.ALL_EXPERIMENT_CLASSES)))
    try:
        return api.make_experiment(name)
    except Exception as error:
        raise ConfigError(f"experiment {name!r} cannot be made: {describe(error, folder)}") from None


def matching(pattern: str) -> list[str]:
    """Returns the names of registered experiments that a regular expression matches anywhere. Raises ConfigError."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"-r {pattern!r} is no regular expression: {error}") from None
    return [name for name in sorted(api.ALL_EXPERIMENT_CLASSES) if expression.search(name)]


def check_names(experiment: str, trial: str) -> None:
    """Raises ConfigError if the name of an experiment or a trial cannot be used."""
    for what, name in (("experiment", experiment), ("trial", trial)):
        if "_" in name:
            better = re.sub(r"[^A-Za-z0-9.-]+", "-", name).strip("-.") or "first"
            raise ConfigError(f'{what} name {name!r} has a "_", which separates names; use {better!r}')
        if not _WORD.match(name) or len(name) > MAX_NAME_LENGTH:
            raise ConfigError(f"{what} name {name!r}: use letters, digits, dots and dashes, at most {MAX_NAME_LENGTH}")


def default_trial() -> str:
    """Returns the name of a trial that was not given: ``test-`` and the user's name."""
    return "test-" + (re.sub(r"[^A-Za-z0-9.-]+", "-", getpass.getuser()) or "user")


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


def unknown(name: str, known: Sequence[str]) -> str:
    """Returns the message about an experiment that nobody has registered."""
    import difflib

    if not known:
        return f"experiment {name!r} is unknown: the project registers none; call api.config.register_experiment"
    near = difflib.get_close_matches(name, known, n=1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return f"experiment {name!r} is unknown{guess} Registered: {', '.join(known)}"


def _is_missing(name: str) -> bool:
    package = name.partition(".")[0]
    return importlib.util.find_spec(package) is None or importlib.util.find_spec(name) is None


def _is_below(path: str, folder: Path) -> bool:
    return Path(path).resolve().is_relative_to(folder.resolve())


def _shown(path: str, folder: Path) -> str:
    return str(Path(path).resolve().relative_to(folder.resolve())) if _is_below(path, folder) else path
