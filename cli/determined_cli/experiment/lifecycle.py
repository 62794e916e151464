"""Commands that change an existing experiment."""

from argparse import Namespace
from collections.abc import Callable

from determined.client import lifecycle
from determined.client.session import Session
from determined.errors import DeterminedError
from determined_cli import connection
from determined_cli.experiment.bulk_selection import ids_of
from determined_cli.terminal.confirmation import confirmed
from determined_cli.terminal.messages import say


def pause(args: Namespace) -> int:
    """Pauses the experiment: its trials save a checkpoint and exit."""
    return _each(args, "pause", "pausing")


def activate(args: Namespace) -> int:
    """Activates the experiment."""
    return _each(args, "activate", "activated")


def cancel(args: Namespace) -> int:
    """Cancels the experiment: its trials save a checkpoint, then it ends."""
    return _each(args, "cancel", "canceling")


def kill(args: Namespace) -> int:
    """Kills the experiment without a checkpoint."""
    return _each(args, "kill", "killed")


def archive(args: Namespace) -> int:
    """Archives a terminal experiment."""
    return _each(args, "archive", "archived")


def unarchive(args: Namespace) -> int:
    """Unarchives an experiment."""
    return _each(args, "unarchive", "unarchived")


def delete(args: Namespace) -> int:
    """Deletes experiments after a confirmation."""
    session = connection.connect(args.options)
    ids = ids_of(args, session, "delete")
    if ids is None:
        return 1
    named = ", ".join(map(str, ids))
    if args.experiment_id and not confirmed(
        f"Delete experiment {named} with all checkpoints?", f"experiment {named}", yes=args.yes
    ):
        return 1
    return _all(ids, "deleting", lambda each: lifecycle.delete(session, each))


def add_label(args: Namespace) -> int:
    """Adds a label."""
    return _label(args, lifecycle.add_label)


def remove_label(args: Namespace) -> int:
    """Removes a label."""
    return _label(args, lifecycle.remove_label)


def _label(args: Namespace, change: Callable[[Session, int, str], list[str]]) -> int:
    session = connection.connect(args.options)
    ids = ids_of(args, session, "label")
    if ids is None:
        return 1
    return _all(
        ids, "", lambda each: f"labels of experiment {each}: {', '.join(change(session, each, args.label)) or 'none'}"
    )


def _each(args: Namespace, verb: str, done: str) -> int:
    session: Session = connection.connect(args.options)
    ids = ids_of(args, session, verb)
    return 1 if ids is None else _all(ids, done, lambda each: lifecycle.steer(session, each, verb))


def _all(ids: list[int], done: str, act: Callable[[int], str | None]) -> int:
    """Applies ``act``, which may return what to say, to every id. Continues after failures and returns the first
    failure's exit code."""
    code = 0
    for experiment_id in ids:
        try:
            say(act(experiment_id) or f"{done} experiment {experiment_id}")
        except DeterminedError as error:
            name = f"experiment {experiment_id}"
            # Most messages name the experiment themselves.
            text = error.message if error.message.startswith(f"{name} ") else f"{name}: {error.message}"
            say(f"det: {text}")
            code = code or error.exit_code
    return code
