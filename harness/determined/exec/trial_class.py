"""Finds the class that ``module:Class``, ``folder.module:Class`` or ``folder/file.py:Class`` names."""

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from determined.errors import DeterminedError


class NoSuchClass(DeterminedError):
    """Raised if a class is not where its name says."""


def find(spec: str, kind: str = "trial class") -> Any:  # noqa: ANN401  # a class of the user
    """Returns the class that ``spec`` names; it may be nested. ``kind`` is its kind in words.

    Folders begin at the current folder and need no package file.

    Raises NoSuchClass; an exception inside the user's module propagates.
    """
    where, _, name = spec.rpartition(":")
    if not where or not name:
        raise NoSuchClass(f"{spec!r} does not name a {kind}; use module:Class or folder/file.py:Class")
    if sys.path[:1] not in ([""], ["."]):
        sys.path.insert(0, "")
    module = _from_file(Path(where)) if where.endswith(".py") else _from_name(where)
    target: Any = module
    for part in name.split("."):
        target = getattr(target, part, None)
        if target is None:
            raise NoSuchClass(f"{where} has no class {name}{_others(module)}")
    return target


def _from_name(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name != missing and not name.startswith(f"{missing}."):
            raise
    # an installed package of the folder's name hides a folder that is no package
    path = Path(*name.split(".")).with_suffix(".py")
    if "." in name and path.is_file():
        return _from_file(path)
    raise NoSuchClass(f"there is no module {name} in {os.getcwd()} or on Python's path")


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise NoSuchClass(f"there is no file {path}{'' if path.is_absolute() else f' in {os.getcwd()}'}")
    # has the name of an import, so that a loader's workers and readers of a checkpoint find the class
    inside = Path(os.path.relpath(path)).with_suffix("")
    name = ".".join(inside.parts) if all(part.isidentifier() for part in inside.parts) else path.stem
    if name in sys.modules and getattr(sys.modules[name], "__file__", None) == str(path.resolve()):
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))  # modules of the same folder, as for `python folder/file.py`
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _others(module: ModuleType) -> str:
    """Returns the classes that the module itself defines, as a hint."""
    own = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and not name.startswith("_")
    ]
    return f"; it has {', '.join(sorted(own))}" if own else ""
