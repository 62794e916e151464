"""Calls about one trial."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from determined.client.paging import items
from determined.client.session import FOR_EVER, ONCE, Session, error_of
from determined.errors import ApiError

PREFIX = "/api/v1/trials"
_WANDB_LINE = "View run"
_WANDB_RUN = re.compile(r"View run\b.*?\bat:? (?:\x1b\[[\d;]*m)*(https?://[^\s\x1b]+)")


def get(session: Session, trial_id: int) -> dict[str, Any]:
    """Returns the trial as the master shows it."""
    return dict(session.get(f"{PREFIX}/{trial_id}")["trial"])


def workloads(session: Session, trial_id: int, *, batches: bool = False) -> list[dict[str, Any]]:
    """Returns the training, validations and checkpoints of a trial. ``batches``: with the metrics of single batches."""
    query = {"includeBatchMetrics": True} if batches else {}
    return list(items(session, f"{PREFIX}/{trial_id}/workloads", "workloads", query))


def other_reports(session: Session, trial: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the reports of groups of one's own, which are no workloads: each with its ``group``."""
    groups = sorted((trial.get("summaryMetrics") or {}).keys() - {"avg_metrics", "validation_metrics"})
    path = f"{PREFIX}/{trial['id']}/workloads"
    return [
        {"group": group, **each["training"]}
        for group in groups
        for each in items(session, path, "workloads", {"group": group})
        if "training" in each  # checkpoints are of no group
    ]


def report_metrics(session: Session, trial_id: int, body: dict[str, Any]) -> None:
    """Reports metrics once, without retries; the caller decides what to do if the master does not answer."""
    session.post(f"{PREFIX}/{trial_id}/metrics", body)


def report_batch(session: Session, trial_id: int, bodies: Sequence[dict[str, Any]]) -> list[ApiError | None]:
    """Reports metrics several times by one request, in order, without retries.

    Returns:
        for each report None, or why the master refuses it; the others are stored all the same.

    Raises:
        ApiError: no report is stored.
    """
    answer = session.post(f"/detent/trials/{trial_id}/reports", {"reports": bodies})
    answers: list[ApiError | None] = [None] * len(bodies)
    for refused in answer["refused"]:
        answers[refused["index"]] = error_of(refused["status"], refused)
    return answers


def report_progress(session: Session, trial_id: int, progress: float) -> None:
    """Reports the completed fraction of the trial, from 0 to 1."""
    session.post(
        f"{PREFIX}/{trial_id}/progress", {"progress": progress, "trialId": trial_id, "isRaw": True}, retry=ONCE
    )


def report_early_exit(session: Session, trial_id: int, reason: str) -> None:
    """Reports ``EXITED_REASON_INVALID_HP`` or ``EXITED_REASON_INIT_INVALID_HP``."""
    session.post(f"{PREFIX}/{trial_id}/early_exit", {"reason": reason}, retry=FOR_EVER)


def set_runner_state(session: Session, trial_id: int, state: str) -> None:
    """Sets the text that describes the current activity of the trial."""
    session.post(f"{PREFIX}/{trial_id}/runner/metadata", {"state": state}, retry=ONCE)


def get_metadata(session: Session, trial_id: int) -> dict[str, Any]:
    """Returns the metadata of the run."""
    return dict(session.get(f"/api/v1/runs/{trial_id}/metadata").get("metadata") or {})


def wandb_run(session: Session, trial_id: int) -> str | None:
    """Returns the address of the run of Weights & Biases that the log names, or None.

    The master searches so many lines from the beginning as one request may examine.
    """
    query = {"after": 0, "limit": 20, "search": _WANDB_LINE}
    lines = session.get(f"/detent/trials/{trial_id}/logs", query)["lines"]
    return next((found[1] for line in lines if (found := _WANDB_RUN.search(line["text"]))), None)


def set_metadata(session: Session, trial_id: int, metadata: dict[str, Any]) -> dict[str, Any]:
    """Replaces the metadata of the run and returns the stored metadata."""
    body = {"runId": trial_id, "metadata": metadata}
    return dict(session.post(f"/api/v1/runs/{trial_id}/metadata", body, retry=FOR_EVER).get("metadata") or {})
