"""Where the modules of the application come from: the folders that its import path has beside those of Python."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_OF_PYTHON = ("stdlib", "platstdlib", "purelib", "platlib")
_OURS = ("__main__", "determined_workflows", "hydra_plugins")
"""Modules that say nothing about the application's own folders."""


class ImportPath:
    """The import path of an application: what it was at first, and what became of it."""

    def __init__(self) -> None:
        named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
        self._named = {os.path.abspath(each) for each in named if each}
        self._installed = {os.path.abspath(each) for each in sys.path} - self._named
        self._first = sys.path[0]
        self._last: str | None = None

    def start(self, first: Path) -> None:
        """Puts ``first`` where Python puts the folder of the script, or with ``-m`` the working folder.

        The working folder is added at the end. A package of the project is found there although ``python SCRIPT`` alone
        would not find it; the task then finds it at the same place.
        """
        self._first, self._last = str(first), os.getcwd()
        sys.path[0:0] = [self._first]
        sys.path.append(self._last)

    def folders(self) -> list[dict[str, Any]]:
        """Returns each folder of the import path, in its order.

        ``is_used`` says that a module was imported from it; ``is_installed``, that the Python environment has it,
        such as the folder of an editable installation.
        """
        used = set(_used())
        path = list(dict.fromkeys(os.path.abspath(each) for each in sys.path if os.path.isdir(each)))
        if self._last in path and self._last not in used | self._named | self._installed:
            path.remove(self._last)
        return [
            {
                "path": each,
                "is_used": each in used,
                "is_installed": each not in self._named and (each in self._installed or each not in path),
            }
            for each in [*path, *sorted(used - set(path))]
            if each != self._first and not _is_of_python(each)
        ]


def _used() -> Iterator[str]:
    for name, module in list(sys.modules.items()):
        if "." in name or name in _OURS:
            continue
        try:
            places = [*(getattr(module, "__path__", None) or [module.__file__])]
        except (AttributeError, KeyError, TypeError):  # a module without a file, or an object in the place of one
            continue
        for place in places:
            if isinstance(place, str):
                yield os.path.dirname(os.path.abspath(place))


def _is_of_python(folder: str) -> bool:
    path = Path(folder)
    if "site-packages" in path.parts or "dist-packages" in path.parts:
        return True
    return any(path.is_relative_to(sysconfig.get_path(name)) for name in _OF_PYTHON)
