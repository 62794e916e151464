"""Resolves the links of a context, and decides whether their targets are sent in their place."""

import os
from dataclasses import dataclass
from pathlib import Path

from determined.context.ignore import FILE_NAME, line_for
from determined.errors import ContextError

MAX_NAMED = 20


@dataclass(frozen=True)
class Region:
    """A real folder of this machine and its path in the context.

    ``is_hidden_left_out``: hidden files below it are not sent; False for a folder that the user named.
    """

    real: str
    path: str
    is_hidden_left_out: bool = False

    def inside(self, target: str) -> str | None:
        """Returns the path in the context of a real path, or None if it lies outside this region."""
        if target != self.real and not target.startswith(self.real.rstrip(os.sep) + os.sep):
            return None
        below = os.path.relpath(target, self.real).replace(os.sep, "/")
        return "/".join(part for part in (self.path, "" if below == "." else below) if part)


@dataclass(frozen=True)
class LeavingLink:
    """A link whose target is not sent without ``--follow-links``."""

    path: str
    target: str


def repository_of(folder: str) -> str | None:
    """Returns the top folder of the git repository that holds ``folder``; a submodule is one of its own."""
    at = Path(folder)
    return next((str(each) for each in (at, *at.parents) if os.path.lexists(each / ".git")), None)


def is_in_same_repository(target: str, repository: str | None) -> bool:
    """Returns True if a link's target belongs to ``repository`` and is not hidden in it.

    A link alone does not send ``.git``, ``.env``, ``.ssh`` and the like: a home folder may be a repository.
    """
    below = None if repository is None else Region(repository, "").inside(target)
    if below is None or any(part.startswith(".") for part in below.split("/")):
        return False
    return repository_of(target if os.path.isdir(target) else os.path.dirname(target)) == repository


def refuse(links: list[LeavingLink], root: Path) -> None:
    """Raises ContextError if there are links whose targets are not sent, naming each and what can be done."""
    if not links:
        return
    count = "a link that points out of" if len(links) == 1 else f"{len(links)} links that point out of"
    lines = [f"{root} holds {count} it, so the task would not find the target:"]
    for link in links[:MAX_NAMED]:
        lines.append(f"  {link.path} -> {link.target}    exclude it with {line_for(link.path)} in {root / FILE_NAME}")
    if len(links) > MAX_NAMED:
        lines.append(f"  and {len(links) - MAX_NAMED} more")
    lines.append(
        "--follow-links sends the targets instead of the links; links inside one git repository are always followed"
    )
    raise ContextError("\n".join(lines))
