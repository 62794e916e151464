"""Calls about one checkpoint."""

from collections.abc import Mapping, Sequence
from typing import Any

from determined.client.session import FOR_EVER, Retry, Session

PREFIX = "/api/v1/checkpoints"


def get(session: Session, uuid: str, *, retry: Retry | None = None) -> dict[str, Any]:
    """Returns the checkpoint as the master knows it."""
    return dict(session.get(f"{PREFIX}/{uuid}", retry=retry)["checkpoint"])


def report(session: Session, body: dict[str, Any]) -> None:
    """Reports a checkpoint that is completely stored; may be repeated."""
    session.post(PREFIX, body, retry=FOR_EVER)


def delete(session: Session, uuids: Sequence[str]) -> None:
    """Deletes checkpoints with their files: all of them, or none if one of them cannot be deleted."""
    session.delete(PREFIX, body={"checkpointUuids": list(uuids)})


def report_deleted(session: Session, uuid: str) -> None:
    """Reports that the files of a checkpoint were removed."""
    session.patch(PREFIX, {"checkpoints": [{"uuid": uuid, "resources": {"resources": {}}}]}, retry=FOR_EVER)


def report_removed(session: Session, removed: Sequence[str], failed: Mapping[str, str]) -> None:
    """Reports the end of a task that removes checkpoints: which are gone, and why others are left."""
    body = {"removed": list(removed), "failed": dict(failed)}
    session.post("/detent/checkpoints/removed", body, retry=FOR_EVER)
