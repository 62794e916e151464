"""Imports the modules of a project, which register its experiments, data and models, in the order of 2023."""

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

_OURS = ("language_models", "torch_backend", "deepspeed_backend")
"""Modules of this package that register models and backends."""
EXPERIMENTS = "experiments"
_OPTIONAL = ("impl.data", "impl.model")


def import_project(folder: Path) -> Iterator[str]:
    """Imports one module after the other, and yields the name of each before it does.

    Args:
        folder: the folder of the project; it becomes the first one from which modules are imported.
    """
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.insert(0, place)
    for name in _OURS:
        importlib.import_module(f"determined_workflows.rlhf.task.{name}")
    for name in (EXPERIMENTS, *(each for each in _OPTIONAL if _exists(each))):
        yield name
        importlib.import_module(name)


def _exists(name: str) -> bool:
    package = name.partition(".")[0]
    return importlib.util.find_spec(package) is not None and importlib.util.find_spec(name) is not None
