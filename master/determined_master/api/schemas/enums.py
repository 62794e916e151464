"""Converts states and levels to the prefixed words of the wire, and back."""

from collections.abc import Iterable
from enum import Enum
from typing import TypeVar

from determined.errors import BadRequest
from determined.states import CheckpointState
from determined_master.states.display_state import BUILDING_ENVIRONMENT, PAUSING, PROGRESS, QUEUED

E = TypeVar("E", bound=Enum)


def state(value: Enum | str) -> str:
    return f"STATE_{value.value if isinstance(value, Enum) else value}"


_OLDER = {PAUSING: "PAUSED", BUILDING_ENVIRONMENT: QUEUED}


def wire_state(shown: str) -> str:
    """Returns a displayed state as older clients know it: they know neither pausing nor building.

    >>> wire_state("PAUSING"), wire_state("RUNNING")
    ('STATE_PAUSED', 'STATE_RUNNING')
    """
    return state(_OLDER.get(shown, shown))


KNOWN_CHECKPOINT_STATES = {
    CheckpointState.DELETING: CheckpointState.DELETED,
    CheckpointState.DELETE_FAILED: CheckpointState.PARTIALLY_DELETED,
}
"""What older clients get for the states that they do not know: a deletion that lasts or has failed."""


def checkpoint_state(value: CheckpointState) -> str:
    """Returns a checkpoint's state as older clients know it.

    >>> checkpoint_state(CheckpointState.DELETING), checkpoint_state(CheckpointState.DELETE_FAILED)
    ('STATE_DELETED', 'STATE_PARTIALLY_DELETED')
    """
    return state(KNOWN_CHECKPOINT_STATES.get(value, value))


def states(values: Iterable[str], kind: type[E]) -> list[E]:
    """Parses states. Raises BadRequest for an unknown one. Displayed states of a live experiment mean ACTIVE."""
    members: list[E] = []
    for value in values:
        word = value.removeprefix("STATE_")
        if word in PROGRESS and "ACTIVE" in kind.__members__:
            word = "ACTIVE"
        if word == "UNSPECIFIED":
            continue
        if word not in kind.__members__:
            raise BadRequest(f"unknown state: {value}; valid states: {', '.join(kind.__members__)}")
        members.append(kind[word])
    return members


def is_descending(order_by: str | None) -> bool:
    """Parses an order. Raises BadRequest for an unknown one."""
    if order_by not in (None, "", "ORDER_BY_UNSPECIFIED", "ORDER_BY_ASC", "ORDER_BY_DESC"):
        raise BadRequest(f"unknown order: {order_by[:100]}; use ORDER_BY_ASC or ORDER_BY_DESC")
    return order_by == "ORDER_BY_DESC"


LOG_LEVELS = ("TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


def log_level(level: str) -> str:
    return f"LOG_LEVEL_{level}" if level in LOG_LEVELS else "LOG_LEVEL_UNSPECIFIED"


def asked_level(level: str) -> str:
    """Like ``plain_level``, for a filter. Raises BadRequest for an unknown level."""
    found = plain_level(level)
    if not found and level not in ("", "LOG_LEVEL_UNSPECIFIED"):
        raise BadRequest(f"unknown level: {level[:100]}; valid levels: {', '.join(LOG_LEVELS)}")
    return found


def plain_level(level: str | None) -> str:
    """Returns ``ERROR`` for ``ERROR`` or ``LOG_LEVEL_ERROR``, and an empty text for anything unknown."""
    word = (level or "").removeprefix("LOG_LEVEL_")
    return word if word in LOG_LEVELS else ""
