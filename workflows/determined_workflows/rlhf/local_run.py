"""Runs a trial on this machine: the launch layer starts its workers, whose output is printed and kept."""

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from determined.errors import DeterminedError
from determined_launch.atomic_file import write_atomic
from determined_workflows import supervised_run
from determined_workflows.rlhf import project
from determined_workflows.rlhf.composition import ROLES_FILE, Composition
from determined_workflows.rlhf.run_record import Record

SAVE_SECONDS = 600.0
"""Time in which the workers may save after the first Ctrl-C; the second one kills them."""
RECOVER, FOLDER, LOG_LEVEL = "DETENT_RLHF_RECOVER", "DETENT_RLHF_FOLDER", "LOGLEVEL"
"""Variables of the workers: the recover mode, the folder of the run, and the level of their log lines."""


def command(composition: Composition, folder: Path) -> str:
    """Returns the line of bash that runs the trial in the folder of its project."""
    run = project.run_folder(folder.resolve(), composition.experiment, composition.trial)
    words = [sys.executable, "-m", "determined.launch.roles", str(run / ROLES_FILE)]
    return f"cd {shlex.quote(str(folder.resolve()))} && {shlex.join(words)}"


def write_roles(composition: Composition, folder: Path, variables: Mapping[str, str]) -> None:
    """Writes the file that the launch layer reads. Raises DeterminedError if it cannot be written."""
    run = project.run_folder(folder.resolve(), composition.experiment, composition.trial)
    text = json.dumps(composition.roles_file({FOLDER: str(run), **variables}), indent=1)
    try:
        run.mkdir(parents=True, exist_ok=True)
        write_atomic(run / ROLES_FILE, text, mode=0o644)
    except OSError as error:
        raise DeterminedError(f"{run} cannot be written: {error.strerror}") from None


def run(composition: Composition, folder: Path, variables: Mapping[str, str]) -> int:
    """Runs the trial to its end. Returns 0, 1 if it failed, or the code of the signal that ended it.

    Raises Conflict if it runs already, and DeterminedError if its folder cannot be written.
    """
    place = project.run_folder(folder, composition.experiment, composition.trial)
    stop = f"det rlhf stop {composition.experiment} {composition.trial}"
    with supervised_run.held(place, stop=stop, grace_seconds=SAVE_SECONDS) as held:
        Record("local").write(place)
        write_roles(composition, folder, variables)
        has_ended = held.run(command(composition, folder), place)
        if held.ended_by is not None:
            return 128 + held.ended_by
    return 0 if has_ended else 1
