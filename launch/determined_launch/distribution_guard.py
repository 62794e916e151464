"""Refuses to run in an environment that also has the older ``determined`` distribution.

Both distributions have a package ``determined``; the one installed last overwrites half of the other. pip cannot
prevent this, so each of our programs checks before it does anything else. The check is in this package because its
name is its own and it is never overwritten.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # few imports, because `det --version` waits for this module
if TYPE_CHECKING:
    from collections.abc import Iterable

OLDER = "determined-"
OURS = "detent_cluster-"


class BothInstalled(ImportError):
    """Raised if one site-packages folder has both distributions."""


def shared_folder(path: Iterable[str]) -> str | None:
    """Returns the first folder on ``path`` with the metadata of both distributions."""
    for folder in path:
        if not os.path.isdir(os.path.join(folder, "determined")):  # faster than a listing of the folder
            continue
        try:
            names = [n for n in os.listdir(folder or ".") if n.endswith(".dist-info")]
        except OSError:
            continue
        if any(n.startswith(OLDER) for n in names) and any(n.startswith(OURS) for n in names):
            return folder
    return None


def raise_if_both_installed() -> None:
    """Raises BothInstalled with instructions if both distributions are installed."""
    folder = shared_folder(sys.path)
    if folder is not None:
        raise BothInstalled(
            f"{folder} holds both detent-cluster and determined, and each has overwritten files of the other. "
            "Create a new environment (python3 -m venv NEW) and install only one of them. "
            "Tasks can use the other library from its own environment: environment.image: venv:PATH"
        )


def exit_if_both_installed(program: str) -> None:
    """Exits with code 1 and one line if both are installed; programs call this before other imports."""
    try:
        raise_if_both_installed()
    except BothInstalled as problem:
        raise SystemExit(f"{program}: {problem}") from None
