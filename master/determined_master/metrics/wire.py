"""Reports of metrics as the wire shows them."""

from typing import Any

from determined_master.db.models import MetricRow
from determined_master.wire.model import Json, Time, Wire


class Metrics(Wire):
    avg_metrics: Json
    batch_metrics: list[Any] = []


class MetricsReport(Wire):
    archived: bool
    end_time: Time
    group: str
    id: int
    metrics: Json
    total_batches: int
    trial_id: int
    trial_run_id: int


def metrics_report(row: MetricRow) -> MetricsReport:
    shown: dict[str, Any] = {"validation_metrics" if row.group == "validation" else "avg_metrics": row.metrics}
    if row.batch_metrics:
        shown["batch_metrics"] = row.batch_metrics
    return MetricsReport(
        archived=row.archived,
        end_time=row.reported_at,
        group=row.group,
        id=row.id,
        metrics=row.metrics if row.group not in ("training", "validation") else shown,
        total_batches=row.steps or 0,
        trial_id=row.trial_id,
        trial_run_id=row.run_id,
    )
