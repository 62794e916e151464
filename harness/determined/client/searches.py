"""Requests of the task that runs a search method, about the search of its experiment."""

from typing import Any

from determined.client.allocations import LONG_POLL_MARGIN
from determined.client.session import FOR_EVER, Session


def begin(session: Session, experiment_id: int) -> dict[str, Any]:
    """Returns the configuration of the search, its snapshot and its cursor."""
    return dict(session.get(_path(experiment_id), retry=FOR_EVER))


def events(session: Session, experiment_id: int, cursor: int, timeout_seconds: int) -> dict[str, Any]:
    """Returns the events after ``cursor``; waits up to ``timeout_seconds`` for the first. Raises Conflict if the search
    is at another cursor."""
    return dict(
        session.get(
            f"{_path(experiment_id)}/events",
            {"cursor": cursor, "timeoutSeconds": timeout_seconds},
            timeout=timeout_seconds + LONG_POLL_MARGIN,
            retry=FOR_EVER,
        )
    )


def step(session: Session, experiment_id: int, body: dict[str, Any]) -> bool:
    """Stores actions and snapshot after some events; may be repeated. Returns True if the search is over. Raises
    BadRequest for actions that the master refuses, and Conflict if another task was faster."""
    return bool(session.post(f"{_path(experiment_id)}/steps", body, retry=FOR_EVER)["isOver"])


def fail(session: Session, experiment_id: int, reason: str, *, is_final: bool) -> None:
    """Reports why the method failed. ``is_final`` ends the experiment; otherwise another task may follow."""
    session.post(f"{_path(experiment_id)}/failures", {"reason": reason, "isFinal": is_final}, retry=FOR_EVER)


def _path(experiment_id: int) -> str:
    return f"/detent/experiments/{experiment_id}/search-task"
