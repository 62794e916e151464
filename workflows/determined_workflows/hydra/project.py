"""The folder of a Hydra project, which becomes the context of its jobs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from determined.context.ignore import line_for
from determined.errors import ContextError
from determined_workflows.hydra.composition import Composition

TASK_FOLDER = ".det_hydra"
OUTPUTS = ("outputs", "multirun")
_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
"""Names in the folder of a project, by which a package beside the script is known to belong to it."""


@dataclass(frozen=True)
class Project:
    """``working_folder`` is relative to ``folder``; ``script`` is relative to the working folder."""

    folder: Path
    working_folder: str
    script: str
    excludes: list[str]
    import_folders: list[str] = field(default_factory=list)
    """Folders of the import path, relative to ``folder``."""
    warnings: list[str] = field(default_factory=list)

    def in_task(self, path: str) -> str:
        """Returns a path of this machine as a task sees it from its working folder; it stays if it is not below
        the project."""
        real = Path(os.path.realpath(path))
        here = self.folder / self.working_folder
        return os.path.relpath(real, here) if real.is_relative_to(self.folder) else path


def find(composition: Composition) -> Project:
    """Finds the project: the smallest folder that holds the working folder, the script, its configurations and those of
    its packages that belong to it.

    Raises ContextError if that is the home folder or the root.
    """
    here = composition.working_folder.resolve()
    script = composition.script.resolve()
    parts = [here, script.parent, *([composition.config_folder.resolve()] if composition.config_folder else [])]
    folder = Path(os.path.commonpath([*parts, *_extra_configs(composition, here)]))
    if _is_too_wide(folder):
        raise ContextError(
            f"the project would be all of {folder}: the working folder {here} and {script} have no smaller folder in "
            "common; change into the folder of the project first"
        )
    warnings = []
    for import_folder in composition.import_folders:
        wider = Path(os.path.commonpath([folder, import_folder.path.resolve()]))
        if wider == folder or import_folder.is_installed or not import_folder.is_used:
            continue
        if not _is_too_wide(wider) and (wider == import_folder.path.resolve() or _is_marked(wider)):
            folder = wider
        else:
            warnings.append(
                f"modules are imported from {import_folder.path}, which is outside of the project {folder} and does "
                "not travel with it: the tasks do not find them unless the Python environment has them"
            )
    return Project(
        folder=folder,
        working_folder=os.path.relpath(here, folder),
        script=os.path.relpath(script, here),
        excludes=sorted({line_for(path) + "/" for path in _outputs(composition, here, folder)}),
        import_folders=[
            os.path.relpath(path, folder)
            for import_folder in composition.import_folders
            if (path := import_folder.path.resolve()).is_relative_to(folder)
        ],
        warnings=[*warnings, *_result_warnings(composition, folder)],
    )


def _extra_configs(composition: Composition, here: Path) -> Iterator[Path]:
    """Yields the folder of ``--config-dir``, if the command names it relative to the working folder."""
    flags = composition.flags
    for name, value in zip(flags[::2], flags[1::2], strict=True):
        if name == "--config-dir" and not Path(value).is_absolute():
            yield (here / value).resolve()


def _is_too_wide(folder: Path) -> bool:
    return folder == Path(folder.anchor) or folder == Path.home()


def _is_marked(folder: Path) -> bool:
    return any((folder / name).exists() for name in _MARKS)


def _result_warnings(composition: Composition, folder: Path) -> Iterator[str]:
    """Yields a warning if a variable of this machine says where results go, outside of the project."""
    section, path = ("sweep", composition.sweep_dir) if composition.is_sweep else ("run", composition.run_dir)
    if section not in composition.moving_folders or path is None or not os.path.isabs(path):
        return
    if not Path(os.path.realpath(path)).is_relative_to(folder):
        yield f"hydra.{section}.dir comes from a variable: results go to {path} on the machine of the agent"


def _outputs(composition: Composition, here: Path, folder: Path) -> Iterator[str]:
    """Yields the folders of results, relative to the project: their names up to the first interpolation."""
    for text in (*OUTPUTS, *composition.output_folders):
        constant = text.partition("${")[0]
        if constant != text:
            constant = constant.rpartition("/")[0]
        path = Path(os.path.normpath(here / constant))
        if not path.is_relative_to(folder):
            path = path.resolve()  # the project may be behind a link
        if constant and path != folder and path.is_relative_to(folder) and not here.is_relative_to(path):
            yield str(path.relative_to(folder))
