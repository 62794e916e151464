"""Calls about commands and services. ``kind`` is ``command`` or the name of a service, such as ``shell``."""

from typing import Any

from determined.client.paging import items
from determined.client.session import Session
from determined.errors import BadRequest, NotFound


def list_all(session: Session, kind: str = "command", **query: object) -> list[dict[str, Any]]:
    """Returns the tasks of a kind as the master shows them, oldest first."""
    return list(items(session, _prefix(kind), f"{kind}s", query))


def describe(session: Session, task_id: str, kind: str = "command") -> dict[str, Any]:
    """Returns the task and, under ``config``, its configuration without secrets."""
    answer = session.get(f"{_prefix(kind)}/{task_id}")
    return {**answer[kind], "config": answer["config"]}


def get(session: Session, task_id: str, kind: str = "command") -> dict[str, Any]:
    """Returns the task as the master shows it."""
    return dict(session.get(f"{_prefix(kind)}/{task_id}")[kind])


def kill(session: Session, task_id: str, kind: str = "command") -> None:
    """Ends a task at once."""
    session.post(f"{_prefix(kind)}/{task_id}/kill", {})


def set_priority(session: Session, task_id: str, priority: int, kind: str = "command") -> None:
    """Sets the priority of a task: 1 to 99, lower numbers come first."""
    session.post(f"{_prefix(kind)}/{task_id}/set_priority", {f"{kind}Id": task_id, "priority": priority})


def has_ended(task: dict[str, Any]) -> bool:
    """Returns True for a task that has ended."""
    return bool(task["state"] == "STATE_TERMINATED")


def resolve(session: Session, prefix: str, kind: str = "command") -> str:
    """Returns the id of the only task of a kind whose id begins with ``prefix``. Raises NotFound or BadRequest."""
    matching = [str(each["id"]) for each in list_all(session, kind) if str(each["id"]).startswith(prefix.lower())]
    if not matching:
        raise NotFound(f"{kind} '{prefix}' not found")
    if len(matching) > 1:
        raise BadRequest(f"{len(matching)} {kind}s begin with {prefix}; give more characters")
    return matching[0]


def _prefix(kind: str) -> str:
    return f"/api/v1/{kind}s"
