"""Asks before something is deleted."""

import sys

from determined.errors import BadRequest
from determined_cli.terminal.messages import say


def confirmed(question: str, what: str, *, yes: bool, doing: str = "deleting", is_final: bool = True) -> bool:
    """Returns True if ``yes`` is given or the user agrees. Raises BadRequest without a terminal.

    ``doing``: what happens to ``what``. ``is_final``: it cannot be undone.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        reason = "cannot be undone" if is_final else "needs a confirmation"
        raise BadRequest(f"{doing} {what} {reason}; without a terminal, confirm with --yes")
    say(f"{question}{' This cannot be undone.' if is_final else ''} [y/N]")
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    say("nothing was changed")
    return False
