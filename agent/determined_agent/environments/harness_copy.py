"""Keeps a copy of the packages inside tasks for each version, so that an upgrade changes nothing under a trial."""

import contextlib
import functools
import hashlib
import importlib.util
import os
import shutil
import threading
from pathlib import Path

import determined
import determined_agent
import determined_launch
from determined.errors import DeterminedError

_Files = tuple[tuple[Path, Path], ...]

_lock = threading.Lock()


_SHIM_MODULES = (
    "__init__",
    "output/__init__",
    "output/line_splitter",
    "output/log_segments",
    "task_process/__init__",
    "task_process/identity",
    "task_process/namespaces",
    "task_process/processes",
    "task_process/shim",
    "task_process/task_spawn",
)
"""Modules of the agent that the shim imports; all use the standard library only."""


def keep_harness(data: Path) -> Path:
    """Returns the folder ``DATA/harness/HASH`` with ``determined`` and ``determined_launch`` only; creates it once."""
    return _keep(data / "harness", _files(_folder(determined.__file__)) + _files(_folder(determined_launch.__file__)))


def keep_shim(data: Path) -> Path:
    """Returns the folder ``DATA/shim/HASH`` with what a shim inside a container imports; creates it once."""
    agent = _folder(determined_agent.__file__)
    modules = tuple((agent.parent, agent / f"{name}.py") for name in _SHIM_MODULES)
    return _keep(data / "shim", modules + _files(_folder(determined_launch.__file__)))


def _keep(folder: Path, files: _Files) -> Path:
    with _lock:
        target = folder / _hash(files)
        if not target.exists():
            plan = target.with_name(f".{target.name}.{os.getpid()}")
            shutil.rmtree(plan, ignore_errors=True)
            for root, path in files:
                copy = plan / path.relative_to(root)
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)  # with its time, by which Python knows whether the compiled file is of it
                _copy_compiled(path, copy)
            # Tasks of other users read it.
            for path in (plan, *plan.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            try:
                plan.rename(target)
            except OSError:  # another agent on the same data folder created it first
                shutil.rmtree(plan, ignore_errors=True)
    return target


def _copy_compiled(path: Path, copy: Path) -> None:
    """Copies what this Python has compiled of a module.

    In a container the copy is read-only, and each start would compile it again, as a Python of another version does.
    A compiled file that only its user may read is left out: another one with a strict umask has imported the module.
    """
    if path.suffix == ".py":
        compiled = Path(importlib.util.cache_from_source(str(copy)))
        with contextlib.suppress(FileNotFoundError, PermissionError):
            compiled.parent.mkdir(exist_ok=True)
            shutil.copy2(importlib.util.cache_from_source(str(path)), compiled)


def _folder(file: str | None) -> Path:
    if file is None:
        raise DeterminedError("the agent's own packages are not installed as files")
    return Path(file).parent


@functools.cache
def _files(package: Path) -> _Files:
    """Returns the files of a package, each with the folder to which its path is relative."""
    paths = (path for path in sorted(package.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return tuple((package.parent, path) for path in paths)


@functools.cache
def _hash(files: _Files) -> str:
    """Computes the hash once: tasks get the version with which this agent was started."""
    digest = hashlib.sha256()
    for root, path in files:
        digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
