"""Calls about commands."""

from typing import Any

from determined.client.paging import items
from determined.client.session import Session
from determined.errors import BadRequest, NotFound

PREFIX = "/api/v1/commands"


def list_all(session: Session, **query: object) -> list[dict[str, Any]]:
    """Returns the commands as the master shows them, oldest first."""
    return list(items(session, PREFIX, "commands", query))


def describe(session: Session, command_id: str) -> dict[str, Any]:
    """Returns the command and, under ``config``, its configuration without secrets."""
    answer = session.get(f"{PREFIX}/{command_id}")
    return {**answer["command"], "config": answer["config"]}


def get(session: Session, command_id: str) -> dict[str, Any]:
    """Returns the command as the master shows it."""
    return dict(session.get(f"{PREFIX}/{command_id}")["command"])


def kill(session: Session, command_id: str) -> None:
    """Ends a command at once."""
    session.post(f"{PREFIX}/{command_id}/kill", {})


def set_priority(session: Session, command_id: str, priority: int) -> None:
    """Sets the priority of a command: 1 to 99, lower numbers come first."""
    session.post(f"{PREFIX}/{command_id}/set_priority", {"commandId": command_id, "priority": priority})


def has_ended(command: dict[str, Any]) -> bool:
    """Returns True for a command that has ended."""
    return bool(command["state"] == "STATE_TERMINATED")


def resolve(session: Session, prefix: str) -> str:
    """Returns the id of the only command whose id begins with ``prefix``. Raises NotFound or BadRequest."""
    matching = [str(each["id"]) for each in list_all(session) if str(each["id"]).startswith(prefix.lower())]
    if not matching:
        raise NotFound(f"command '{prefix}' not found")
    if len(matching) > 1:
        raise BadRequest(f"{len(matching)} commands begin with {prefix}; give more characters")
    return matching[0]
