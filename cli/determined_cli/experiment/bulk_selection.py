"""Experiments that a command changes: given by ids, or found by ``--filter`` and ``--all`` after a confirmation."""

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from determined.client import users
from determined.client.session import Session
from determined.errors import BadRequest
from determined_cli.experiment import search
from determined_cli.experiment.show import COLUMNS
from determined_cli.failures import counted
from determined_cli.output.row_selection import parse_condition
from determined_cli.output.states import ENDED, display_state, without_prefix
from determined_cli.terminal.confirmation import confirmed
from determined_cli.terminal.messages import say

MAX_NAMED = 10
_DOING = {
    "pause": "pausing",
    "activate": "activating",
    "cancel": "canceling",
    "kill": "killing",
    "archive": "archiving",
    "unarchive": "unarchiving",
    "delete": "deleting",
    "label": "labeling",
}
_GOING = frozenset({"DELETING", "DELETED"})


def ids_of(args: Namespace, session: Session, action: str) -> list[int] | None:
    """Returns the ids of the experiments to change; None if the user did not agree or there are none.

    Without ids, ``--filter`` or ``--all`` find the user's own experiments to which the action applies (those of others
    where a filter names ``username``), and the user is asked with their number.
    """
    given = args.experiment_id if isinstance(args.experiment_id, list) else [args.experiment_id]
    ids = [each for each in given if each is not None]
    if ids and (args.filter or args.all):
        raise BadRequest("give ids, or --filter or --all, and not both")
    if ids:
        return ids
    if not args.filter and not args.all:
        raise BadRequest("give ids of experiments, --filter CONDITION, or --all")
    rows = _found(args, session, action)
    chosen = sorted(int(each["id"]) for each in rows if applies(action, each))
    left = len(rows) - len(chosen)
    if left:
        say(f"{left} of the {len(rows)} found {'is' if left == 1 else 'are'} left out: {action} does not apply to them")
    if not chosen:
        say("no experiment is left to change")
        return None
    named = ", ".join(map(str, chosen[:MAX_NAMED])) + (", …" if len(chosen) > MAX_NAMED else "")
    count = counted(len(chosen), "experiment")
    question = f"{action.capitalize()} {count} ({named})?"
    is_final = action in ("delete", "kill")
    return chosen if confirmed(question, count, yes=args.yes, doing=_DOING[action], is_final=is_final) else None


def applies(action: str, experiment: Mapping[str, Any]) -> bool:
    """Returns True if an action would change an experiment, as far as its row in a list says.

    >>> applies("pause", {"state": "STATE_RUNNING"}), applies("pause", {"state": "STATE_COMPLETED"})
    (True, False)
    """
    state, archived = without_prefix(display_state(experiment)), bool(experiment.get("archived"))
    if action == "label":
        return state not in _GOING
    if action == "unarchive":
        return archived and state not in _GOING
    if action in ("archive", "delete"):
        return state in ENDED and state not in _GOING and not (action == "archive" and archived)
    if state in ENDED or state in _GOING:
        return False
    if action == "activate":
        return state in ("PAUSED", "PAUSING")
    return action != "pause" or not (state in ("PAUSED", "PAUSING") or state.startswith("STOPPING_"))


def _found(args: Namespace, session: Session, action: str) -> list[dict[str, Any]]:
    names_user = any(parse_condition(text, COLUMNS)[0] == "username" for text in args.filter)
    names_archived = any(parse_condition(text, COLUMNS)[0] == "archived" for text in args.filter)
    owner = None if names_user else str(users.me(session)["username"])
    question = search.question_of(args, COLUMNS, owner=owner, archived=names_archived or action == "unarchive")
    return search.search(session, question, offset=0, limit=None).experiments
