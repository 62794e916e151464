"""Calls about tasks of every kind."""

from typing import Any

from determined.client.session import Session


def list_live(session: Session) -> list[dict[str, Any]]:
    """Returns the attempts that run or wait, oldest first; keys as in ``GET /tasks``."""
    return sorted(session.get("/tasks").values(), key=lambda each: str(each["registered_time"]))


def get(session: Session, task_id: str) -> dict[str, Any]:
    """Returns the task as the master shows it."""
    return dict(session.get(f"/api/v1/tasks/{task_id}")["task"])


def has_ended(task: dict[str, Any]) -> bool:
    """Returns True for a task that has ended."""
    return bool(task.get("endTime"))


def kill(session: Session, task_id: str) -> None:
    """Ends a task at once that is not a trial."""
    session.post(f"/api/v1/tasks/{task_id}/kill", {})
