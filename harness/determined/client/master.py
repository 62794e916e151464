"""Requests about the master itself."""

from collections.abc import Iterator
from typing import Any

from determined.client.session import ONCE, Session
from determined.errors import ApiError


def info(session: Session) -> dict[str, Any]:
    """Returns version, cluster id and name; needs no login."""
    return dict(session.get("/api/v1/master"))


def full_storages(session: Session) -> list[str]:
    """Returns the names of the storages that the master reports as full or failing; needs no login."""
    try:
        answer = health(session)
    except ApiError:
        return []
    found = answer.get("storage") or ()
    return [str(each.get("name")) for each in found if each.get("status") in ("full", "failing")]


def health(session: Session) -> dict[str, Any]:
    """Returns what the master says of its health, also when it is not healthy; needs no login.

    Raises MasterUnreachable if it says nothing.
    """
    try:
        return dict(session.get("/health", retry=ONCE))
    except ApiError as error:
        answer = error.__dict__.get("answer")
        if not isinstance(answer, dict) or not answer:
            raise
        return answer


def config(session: Session) -> dict[str, Any]:
    """Returns the master's settings with masked secrets; for admins."""
    return dict(session.get("/api/v1/master/config")["config"])


def logs(session: Session, *, follow: bool, limit: int | None) -> Iterator[dict[str, Any]]:
    """Yields the entries of the master's own log."""
    query = {"follow": follow, "limit": limit}
    for result in session.stream("/api/v1/master/logs", query):
        yield result["logEntry"]
