"""Refuses to run in an environment that also has the older ``determined`` distribution.

Both bring a package ``determined``; whichever was installed last has overwritten half of the other. pip cannot refuse
that, so each of our programs looks before it does anything else. This package has a name of its own and is never
overwritten, which is why the look is here.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `det --version` waits for this module: it imports no more than it needs
if TYPE_CHECKING:
    from collections.abc import Iterable

OLDER = "determined-"
OURS = "detent_cluster-"


class BothInstalled(ImportError):
    """One site-packages holds both distributions."""


def shared_folder(path: Iterable[str]) -> str | None:
    """The first folder on ``path`` that holds both distributions' metadata."""
    for folder in path:
        if not os.path.isdir(os.path.join(folder, "determined")):  # a look at one name, where a listing takes longer
            continue
        try:
            names = [n for n in os.listdir(folder or ".") if n.endswith(".dist-info")]
        except OSError:
            continue
        if any(n.startswith(OLDER) for n in names) and any(n.startswith(OURS) for n in names):
            return folder
    return None


def refuse() -> None:
    """Raises BothInstalled with what to do."""
    folder = shared_folder(sys.path)
    if folder is not None:
        raise BothInstalled(
            f"{folder} holds both detent-cluster and determined, and each has overwritten files of the other. "
            "Make a new environment (python3 -m venv NEW) and install only one of them there; "
            "tasks may use the older library from an environment of its own: environment.image: venv:PATH"
        )


def stop(program: str) -> None:
    """For programs, before they import anything that may have been overwritten: one line, exit 1."""
    try:
        refuse()
    except BothInstalled as problem:
        raise SystemExit(f"{program}: {problem}") from None
