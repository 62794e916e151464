"""The folders of a project: its root, its ``hpc_files``, and its part of the scratch disk."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from determined.errors import ConfigError

FILES_FOLDER = "hpc_files"
OWN_FOLDER = ".batch"


@dataclass(frozen=True)
class Project:
    """A project by its root. ``scratch``: the folder of all projects on the scratch disk."""

    root: Path
    scratch: Path

    @property
    def name(self) -> str:
        return self.root.name

    @property
    def files(self) -> Path:
        return self.root / FILES_FOLDER

    @property
    def scratch_dir(self) -> Path:
        return self.scratch / self.name

    @property
    def outputs(self) -> Path:
        return self.scratch_dir / "hpc_outputs"

    @property
    def records(self) -> Path:
        """The folder of the records of all submissions."""
        return self.outputs / OWN_FOLDER

    @property
    def archives(self) -> Path:
        """The folder of packed data."""
        return self.scratch_dir / OWN_FOLDER / "data"


def root(given: str | None) -> Path:
    """Returns the project's root: as given, else the working folder, or the folder above if that is ``hpc_files``.

    Raises ConfigError if it is not a folder.
    """
    folder = Path(given) if given else Path.cwd()
    if not folder.is_dir():
        raise ConfigError(f"--project: there is no folder {folder}")
    folder = folder.resolve()
    if given:
        return folder.parent if folder.name == FILES_FOLDER else folder
    return next((each for each in (folder, *folder.parents) if (each / FILES_FOLDER).is_dir()), folder)


def find(given: str | None, environ: Mapping[str, str], site_scratch: str | None) -> Project:
    """Returns the project. Raises ConfigError if no scratch disk is set, or it is not there."""
    scratch = environ.get("SCRATCH") or site_scratch
    if not scratch:
        raise ConfigError(
            "SCRATCH is not set: outputs, checkpoints and data go below it. Set it (export SCRATCH=/scratch/$USER), or "
            "write `scratch: FOLDER` into SITE.yaml"
        )
    folder = Path(scratch)
    if not folder.is_absolute():
        raise ConfigError(f'SCRATCH "{scratch}" is not an absolute path')
    return Project(root(given), folder)


def check_writable(folder: Path) -> None:
    """Raises ConfigError if ``folder`` cannot be created or written. Creates nothing."""
    existing = folder
    while not os.path.lexists(existing) and existing != existing.parent:
        existing = existing.parent
    if not existing.is_dir():
        raise ConfigError(f"the output folder {folder} cannot be written: {existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError(f"the output folder {folder} cannot be written: no permission for {existing}")
