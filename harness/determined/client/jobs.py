"""Calls about the job queue."""

from collections.abc import Sequence
from typing import Any

from determined.client.session import Session


def queue(session: Session, pool: str = "") -> list[dict[str, Any]]:
    """Returns the jobs of a pool that wait or run, in the order of the queue; empty: the cluster's default pool."""
    answer = session.get("/api/v1/job-queues-v2", {"resourcePool": pool} if pool else {})
    return [each["full"] for each in answer["jobs"]]


def update(session: Session, changes: Sequence[dict[str, Any]], *, dry_run: bool = False) -> list[dict[str, Any]]:
    """Applies all changes, or none.

    Args:
        session: a connection to the master.
        changes: each with ``jobId`` and any of ``priority``, ``weight``, ``resourcePool``, ``aheadOf``, ``behindOf``.
        dry_run: change nothing.

    Returns:
        What has changed, or would, of each job: ``jobId``, ``fields`` and ``passed``.

    Raises:
        BadRequest: a value is wrong; Forbidden: only an admin may do this.
    """
    answer = session.post("/detent/job-queues", {"updates": list(changes), "dryRun": dry_run})
    return list(answer["changes"])


def why(session: Session, target: str, *, is_trial: bool = False) -> dict[str, Any]:
    """Explains why an experiment, a trial or a task waits.

    Args:
        session: a connection to the master.
        target: the number of an experiment or a trial, or the id of a task or allocation.
        is_trial: the number is a trial's.

    Returns:
        ``subject``, ``text`` (its state in words), ``waiting`` (a count), ``first`` and ``notes``, see ``GET
        /detent/experiments/{id}/why``; ``first`` is None if nothing waits.
    """
    if not target.isdecimal():
        return {"subject": f"task {target}", "text": "", **_why(session, f"tasks/{target}")}
    if is_trial:
        return {"subject": f"trial {target}", "text": _state(session, target), **_why(session, f"trials/{target}")}
    text = session.get(f"/detent/experiments/{target}/status").get("text", "")
    return {"subject": f"experiment {target}", "text": text, **_why(session, f"experiments/{target}")}


def _why(session: Session, target: str) -> dict[str, Any]:
    answer: dict[str, Any] = session.get(f"/detent/{target}/why")
    return answer


def _state(session: Session, trial_id: str) -> str:
    """Returns the state of a trial, and how its newest attempt ended."""
    progress = session.get(f"/detent/trials/{trial_id}/progress")
    state = str(progress["state"]).lower()
    if progress.get("note"):
        return f"{state}; {progress['note']}"
    attempts = session.get(f"/detent/trials/{trial_id}/attempts")["attempts"]
    cause = (attempts[-1].get("failure") or attempts[-1].get("message")) if attempts else ""
    return f"{state}: {cause}" if cause else state
