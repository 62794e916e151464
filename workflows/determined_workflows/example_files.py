"""Writes the example project of a workflow: all of its files, or none."""

from collections.abc import Mapping
from pathlib import Path

from determined.errors import Conflict, DeterminedError


def write(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Writes texts by their paths below a folder, and returns the paths.

    Raises Conflict and writes nothing if one of them exists, and DeterminedError if one cannot be written.
    """
    paths = [folder / name for name in files]
    taken = [path for path in paths if path.exists()]
    if taken:
        raise Conflict(f"{taken[0]} exists already; nothing was written")
    try:
        for path, text in zip(paths, files.values(), strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise DeterminedError(f"{error.filename} cannot be written: {error.strerror}") from None
    return paths
