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
