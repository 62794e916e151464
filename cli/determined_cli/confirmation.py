"""Asks before something is deleted."""

import sys

from determined.errors import BadRequest
from determined_cli.main import say


def confirmed(question: str, what: str, *, yes: bool) -> bool:
    """Returns True if ``yes`` is given or the user agrees. Raises BadRequest without a terminal."""
    if yes:
        return True
    if not sys.stdin.isatty():
        raise BadRequest(f"deleting {what} cannot be undone; without a terminal, confirm with --yes")
    say(f"{question} This cannot be undone. [y/N]")
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    say("Nothing was deleted")
    return False
