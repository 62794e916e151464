"""Reported metrics of a trial."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from determined.client.numbers import from_wire
from determined.client.session import Session
from determined.experimental._times import parse_time


@dataclass(frozen=True)
class TrialMetrics:
    """One report of metrics.

    Attributes:
        trial_id: id of the trial.
        trial_run_id: number of the attempt that reported, from 0.
        steps_completed: batches (or the unit of the script) that were done at that time.
        end_time: time of the report, with its time zone; None if the master knows none.
        metrics: value by name, as reported; NaN and infinities are floats.
        batch_metrics: values of single batches, mostly none.
        group: ``training``, ``validation``, or a group of the script's own.
    """

    trial_id: int
    trial_run_id: int
    steps_completed: int
    end_time: datetime | None
    metrics: dict[str, Any]
    batch_metrics: list[dict[str, Any]] = field(default_factory=list)
    group: str = ""


def stream_reports(session: Session, trial_ids: Sequence[int], group: str) -> Iterator[TrialMetrics]:
    """Yields the reports of a group; of all groups for an empty one. Ordered by trial, then by arrival."""
    query = {"trialIds": list(trial_ids), "group": group or None}
    for part in session.stream("/api/v1/trials/metrics/trial_metrics", query):
        for report in part.get("metrics") or ():
            yield _report(report)


def _report(report: Mapping[str, Any]) -> TrialMetrics:
    group = str(report.get("group") or "")
    body = from_wire(report.get("metrics") or {})
    key = "validation_metrics" if group == "validation" else "avg_metrics"
    return TrialMetrics(
        trial_id=int(report["trialId"]),
        trial_run_id=int(report["trialRunId"]),
        steps_completed=int(report["totalBatches"]),
        end_time=parse_time(report.get("endTime")),
        metrics=dict(body.get(key) or {}),
        batch_metrics=list(body.get("batch_metrics") or ()),
        group=group,
    )
