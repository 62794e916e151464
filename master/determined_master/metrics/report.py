"""One report of metrics."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Report:
    """One report. ``steps`` None: keyed by ``reported_at`` (profiler groups). Metrics hold floats, NaN included."""

    trial_id: int
    run_id: int
    group: str
    steps: int | None
    reported_at: datetime
    metrics: dict[str, Any]
    batch_metrics: list[Any] | None
