"""Which actions on an experiment are allowed in which state: one table for the commands and for the page. Pure."""

from typing import Literal, NamedTuple

from determined.states import ExperimentState, state_clause, state_phrase
from determined_master.experiments.states import ALLOWED

Action = Literal["pause", "activate", "cancel", "kill", "archive", "unarchive", "delete", "fork", "continue"]


class Refusal(NamedTuple):
    """Why an action is not offered. ``text`` follows "it" or "experiment 3". ``is_noop``: a command accepts it, because
    what was asked for is so already."""

    text: str
    is_noop: bool = False


def refusal(action: Action, state: ExperimentState, *, archived: bool) -> Refusal | None:
    """Returns why an action is not possible now; None if it is.

    >>> refusal("pause", ExperimentState.COMPLETED, archived=False)
    Refusal(text='is completed and cannot be paused', is_noop=False)
    """
    if action in ("pause", "activate", "cancel", "kill"):
        return _steering(action, state)
    if state in (ExperimentState.DELETING, ExperimentState.DELETED):
        return Refusal("is being deleted", is_noop=action == "delete")
    if action == "fork":
        return None
    if not state.is_terminal:
        done = {"delete": "deleted", "continue": "continued"}.get(action, f"{action}d")
        advice = "; cancel or kill it first" if action == "delete" else ""
        return Refusal(f"is {state_phrase(state)}; only an experiment that has ended can be {done}{advice}")
    if action == "continue":
        if not state.is_ended:
            return Refusal("is being deleted")
        return Refusal("is archived; unarchive it first") if archived else None
    if action == "archive" and archived:
        return Refusal("is archived already", is_noop=True)
    if action == "unarchive" and not archived:
        return Refusal("is not archived", is_noop=True)
    return None


def _steering(action: Action, state: ExperimentState) -> Refusal | None:
    if state.is_terminal:
        ended = f"has ended ({state_phrase(state)})"
        if action == "pause":
            return Refusal(f"{state_clause(state)} and cannot be paused")
        return Refusal(f"{ended}; fork it to run it again") if action == "activate" else Refusal(ended, is_noop=True)
    if state.is_stopping:
        if action == "kill" and ExperimentState.STOPPING_KILLED in ALLOWED[state]:
            return None
        return Refusal("is being stopped", is_noop=action in ("cancel", "kill"))
    if action == "pause" and state is ExperimentState.PAUSED:
        return Refusal("is paused", is_noop=True)
    if action == "activate" and state is ExperimentState.ACTIVE:
        return Refusal("is active", is_noop=True)
    return None
