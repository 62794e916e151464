"""Displayed names of states."""

from collections.abc import Mapping
from typing import Any

ENDED = frozenset({"COMPLETED", "CANCELED", "ERROR", "DELETED", "DELETE_FAILED"})


def without_prefix(state: str | None) -> str:
    """Returns the state without the prefix of the wire protocol.

    >>> without_prefix("STATE_ACTIVE")
    'ACTIVE'
    """
    return (state or "").removeprefix("STATE_")


def has_ended(state: str | None) -> bool:
    """Returns True for a terminal state."""
    return without_prefix(state) in ENDED


def display_state(found: Mapping[str, Any]) -> str:
    """Returns the displayed state of an experiment or a trial; ``state`` of a master that has no other.

    >>> display_state({"state": "STATE_PAUSED", "displayState": "STATE_PAUSING"})
    'STATE_PAUSING'
    >>> display_state({"state": "STATE_PAUSED"})
    'STATE_PAUSED'
    """
    return str(found.get("displayState") or found.get("display_state") or found["state"])
