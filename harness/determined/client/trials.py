"""Calls about one trial."""

from typing import Any

from determined.client.session import FOR_EVER, ONCE, Session

PREFIX = "/api/v1/trials"


def get(session: Session, trial_id: int) -> dict[str, Any]:
    """The trial as the master shows it."""
    return dict(session.get(f"{PREFIX}/{trial_id}")["trial"])


def report_metrics(session: Session, trial_id: int, body: dict[str, Any]) -> None:
    """One attempt; the caller decides what to do when the master is away."""
    session.post(f"{PREFIX}/{trial_id}/metrics", body)


def report_progress(session: Session, trial_id: int, progress: float) -> None:
    """How far the trial is, 0 to 1."""
    session.post(
        f"{PREFIX}/{trial_id}/progress", {"progress": progress, "trialId": trial_id, "isRaw": True}, retry=ONCE
    )


def report_early_exit(session: Session, trial_id: int, reason: str) -> None:
    """``EXITED_REASON_INVALID_HP`` or ``EXITED_REASON_INIT_INVALID_HP``."""
    session.post(f"{PREFIX}/{trial_id}/early_exit", {"reason": reason}, retry=FOR_EVER)


def set_runner_state(session: Session, trial_id: int, state: str) -> None:
    """A word for people about what the trial does now."""
    session.post(f"{PREFIX}/{trial_id}/runner/metadata", {"state": state}, retry=ONCE)


def get_metadata(session: Session, trial_id: int) -> dict[str, Any]:
    """The run's own metadata."""
    return dict(session.get(f"/api/v1/runs/{trial_id}/metadata").get("metadata") or {})


def set_metadata(session: Session, trial_id: int, metadata: dict[str, Any]) -> dict[str, Any]:
    """Replaces the run's metadata; what is kept is returned."""
    body = {"runId": trial_id, "metadata": metadata}
    return dict(session.post(f"/api/v1/runs/{trial_id}/metadata", body, retry=FOR_EVER).get("metadata") or {})
