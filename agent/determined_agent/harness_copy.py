"""Keeps a copy of the in-task packages for each version, so that an upgrade changes nothing under a running trial."""

import functools
import hashlib
import os
import shutil
import threading
from pathlib import Path

import determined
import determined_launch
from determined.errors import DeterminedError

_lock = threading.Lock()


def keep_harness(data: Path) -> Path:
    """Returns the folder ``DATA/harness/HASH`` with ``determined`` and ``determined_launch`` only; creates it once."""
    packages = [_folder(determined.__file__), _folder(determined_launch.__file__)]
    with _lock:
        target = data / "harness" / _hash(*packages)
        if not target.exists():
            draft = target.with_name(f".{target.name}.{os.getpid()}")
            shutil.rmtree(draft, ignore_errors=True)
            for package in packages:
                shutil.copytree(package, draft / package.name, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
            try:
                draft.rename(target)
            except OSError:  # another agent on the same data folder created it first
                shutil.rmtree(draft, ignore_errors=True)
    return target


def _folder(file: str | None) -> Path:
    if file is None:
        raise DeterminedError("the agent's own packages are not installed as files")
    return Path(file).parent


@functools.cache
def _hash(*packages: Path) -> str:
    """Computes the hash once: tasks get the version with which this agent was started."""
    digest = hashlib.sha256()
    for package in packages:
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(package.parent)}\0{path.stat().st_size}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
