"""The library for training on a Detent cluster: ``det.core.init()``, ``det.pytorch``, ``det.get_cluster_info()``."""

from typing import TYPE_CHECKING, Any

from determined.errors import InvalidHP
from determined_launch import distribution_guard
from determined_launch.version import __version__ as __version__

if TYPE_CHECKING:
    from determined import core, pytorch
    from determined._import_path import import_from_path
    from determined.core import ClusterInfo, TrialInfo, get_cluster_info

distribution_guard.raise_if_both_installed()


LOG_FORMAT = "%(levelname)s: [%(process)d] %(name)s: %(message)s"
"""Format of our own log lines in a task, for ``logging.basicConfig``; levels are parsed from such lines."""

__all__ = [
    "LOG_FORMAT",
    "ClusterInfo",
    "InvalidHP",
    "TrialInfo",
    "core",
    "get_cluster_info",
    "import_from_path",
    "pytorch",
]

_FOLDERS = (
    *("client", "common", "core", "errors", "experimental", "keras", "launch", "pytorch", "tensorboard"),
    *("transformers", "util"),
)
_FROM_CORE = ("ClusterInfo", "TrialInfo", "get_cluster_info")


def __getattr__(name: str) -> Any:  # noqa: ANN401  # the parts of the package have several types
    """Imports a part at its first use, so that ``import determined`` alone stays fast."""
    import importlib

    if name in _FOLDERS:
        return importlib.import_module(f"determined.{name}")
    if name in _FROM_CORE:
        return getattr(importlib.import_module("determined.core"), name)
    if name == "import_from_path":
        return importlib.import_module("determined._import_path").import_from_path
    if not name.startswith("_"):
        not_included = importlib.import_module("determined._not_included")
        if name in not_included.INSTEAD:
            raise AttributeError(not_included.explain(name))
    raise AttributeError(f"module 'determined' has no attribute {name!r}")
