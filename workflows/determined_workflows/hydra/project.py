"""The folder of a Hydra project, which becomes the context of its jobs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from determined.context.ignore import line_for
from determined.errors import ContextError
from determined_workflows.hydra.composition import Composition

TASK_FOLDER = ".det_hydra"
OUTPUTS = ("outputs", "multirun")


@dataclass(frozen=True)
class Project:
    """``working_folder`` is relative to ``folder``; ``script`` is relative to the working folder."""

    folder: Path
    working_folder: str
    script: str
    excludes: list[str]


def find(composition: Composition) -> Project:
    """Returns the smallest folder that holds the working folder, the script and its configurations.

    Raises ContextError if that is the home folder or the root.
    """
    here = composition.working_folder.resolve()
    script = composition.script.resolve()
    parts = [here, script.parent, *([composition.config_folder.resolve()] if composition.config_folder else [])]
    folder = Path(os.path.commonpath(parts))
    if folder == Path(folder.anchor) or folder == Path.home():
        raise ContextError(
            f"the project would be all of {folder}: the working folder {here} and {script} have no smaller folder in "
            "common; change into the folder of the project first"
        )
    return Project(
        folder=folder,
        working_folder=os.path.relpath(here, folder),
        script=os.path.relpath(script, here),
        excludes=sorted({line_for(path) + "/" for path in _outputs(composition, here, folder)}),
    )


def _outputs(composition: Composition, here: Path, folder: Path) -> Iterator[str]:
    """Yields the folders of results, relative to the project: their names up to the first interpolation."""
    for text in (*OUTPUTS, *composition.output_folders):
        constant = text.partition("${")[0]
        if constant != text:
            constant = constant.rpartition("/")[0]
        path = Path(os.path.normpath(here / constant))
        if constant and path != folder and path.is_relative_to(folder) and not here.is_relative_to(path):
            yield str(path.relative_to(folder))
