"""The verbs of ``det experiment`` that change one that exists."""

import sys
from argparse import Namespace
from collections.abc import Callable

from determined.client import lifecycle
from determined.client.session import Session
from determined.errors import BadRequest, DeterminedError
from determined_cli import connection
from determined_cli.main import say


def pause(args: Namespace) -> int:
    """Asks the trials to save and to leave."""
    return _each(args, "pause", "pausing")


def activate(args: Namespace) -> int:
    """Lets the unfinished trials go on."""
    return _each(args, "activate", "activated")


def cancel(args: Namespace) -> int:
    """Asks the trials to save, then ends it."""
    return _each(args, "cancel", "canceling")


def kill(args: Namespace) -> int:
    """Ends it without asking the trials."""
    return _each(args, "kill", "killed")


def archive(args: Namespace) -> int:
    """Hides an ended one."""
    return _each(args, "archive", "archived")


def unarchive(args: Namespace) -> int:
    """Shows it again."""
    return _each(args, "unarchive", "unarchived")


def delete(args: Namespace) -> int:
    """Deletes after asking: this cannot be undone."""
    session = connection.connect(args.options)
    ids = ", ".join(map(str, args.experiment_id))
    if not args.yes:
        if not sys.stdin.isatty():
            raise BadRequest(f"deleting {ids} cannot be undone; give --yes where nobody can be asked")
        say(f"Delete experiment {ids} with all checkpoints? This cannot be undone. [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            say("nothing deleted")
            return 1
    return _all(args.experiment_id, "deleting", lambda each: lifecycle.delete(session, each))


def add_label(args: Namespace) -> None:
    """Adds one label."""
    _say_labels(args, lifecycle.add_label(connection.connect(args.options), args.experiment_id, args.label))


def remove_label(args: Namespace) -> None:
    """Removes one label."""
    _say_labels(args, lifecycle.remove_label(connection.connect(args.options), args.experiment_id, args.label))


def _say_labels(args: Namespace, labels: list[str]) -> None:
    say(f"labels of experiment {args.experiment_id}: {', '.join(labels) or 'none'}")


def _each(args: Namespace, verb: str, done: str) -> int:
    session: Session = connection.connect(args.options)
    return _all(args.experiment_id, done, lambda each: lifecycle.steer(session, each, verb))


def _all(ids: list[int], done: str, act: Callable[[int], None]) -> int:
    """One that fails does not keep the others from their turn; its code is the command's."""
    code = 0
    for each in ids:
        try:
            act(each)
            say(f"{done} experiment {each}")
        except DeterminedError as error:
            say(f"det: experiment {each}: {error.message}")
            code = code or error.exit_code
    return code
