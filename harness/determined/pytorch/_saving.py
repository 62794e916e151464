"""Writes the files of a checkpoint from the training state and reads them back."""

import errno
import importlib.metadata
import io
import json
import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from determined.errors import DeterminedError

STATE_FILE = "state_dict.pth"
LOAD_FILE = "load_data.json"
CODE_FOLDER = "code"
_CODE_LIMIT = 1 << 20
_SPARE = 1 << 16


def write(folder: Path, checkpoint: dict[str, Any], load_data: dict[str, Any], code: Path | None) -> None:
    """Writes all files of a checkpoint."""
    try:
        torch.save(checkpoint, folder / STATE_FILE)
    except RuntimeError as error:
        # torch's archive writer hides the reason, which probably is a full disk
        free = os.statvfs(folder)
        if free.f_bavail * free.f_frsize < _SPARE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder)) from error
        raise
    (folder / LOAD_FILE).write_text(json.dumps(load_data, indent=1), encoding="utf-8")
    if code is not None:
        _copy_code(code, folder / CODE_FOLDER)


def read(folder: Path, *, trusted: bool) -> dict[str, Any]:
    """Reads a checkpoint. Parts that need code are read only if ``trusted``."""
    return dict(load(folder / STATE_FILE, trusted=trusted))


def read_rank(data: bytes, *, trusted: bool) -> dict[str, Any]:
    """Reads the parts of one rank."""
    return dict(load(io.BytesIO(data), trusted=trusted))


def load(source: Any, *, trusted: bool, **options: Any) -> Any:  # noqa: ANN401  # content of a file
    """Calls ``torch.load`` without running code; with ``trusted``, for the experiment's own files, code may run."""
    options.setdefault("map_location", "cpu")
    try:
        return torch.load(source, weights_only=True, **options)
    except pickle.UnpicklingError as error:
        if not trusted:
            raise DeterminedError(
                f"the checkpoint holds objects that only running code can read, and is of another experiment: {error}"
            ) from None
    if hasattr(source, "seek"):
        source.seek(0)
    return torch.load(source, weights_only=False, **options)


def version_of(package: str) -> str:
    """Returns the version of an installed package, or a question mark if it has no metadata."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "?"


def _copy_code(source: Path, target: Path) -> None:
    """Copies the model's Python files, so that the checkpoint can be read elsewhere.

    Leaves out files of data and of more than 1 MiB, hidden files and folders, what is mounted below the working folder,
    and the files of checkpoints.
    """
    checkpoints = target.parent.parent.stat()
    for path in list(_python_files(source, checkpoints)):  # before the first of them lies below the target
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def _python_files(source: Path, checkpoints: os.stat_result) -> Iterator[Path]:
    """Yields the Python files below ``source``. ``checkpoints``: the folder of all checkpoints, which may lie there."""
    device = source.stat().st_dev
    for above, folders, names in os.walk(source):
        found = os.stat(above)
        is_elsewhere = found.st_dev != device or (above != str(source) and os.path.samestat(found, checkpoints))
        if is_elsewhere or LOAD_FILE in names:
            folders.clear()
            continue
        # Not even looked into: an environment beside the code may have ten thousands of files.
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "__pycache__")
        for name in sorted(names):
            path = Path(above) / name
            is_code = name.endswith(".py") and not name.startswith(".")
            if is_code and path.is_file() and path.stat().st_size <= _CODE_LIMIT:
                yield path
