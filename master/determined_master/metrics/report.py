"""One report of metrics."""

from datetime import datetime
from typing import Any

import msgspec


class Report(msgspec.Struct, frozen=True):
    """One report. ``steps`` None: keyed by ``reported_at``, as in groups of the profiler; reports of training and
    validation have steps. Metrics hold floats, NaN included."""

    trial_id: int
    run_id: int
    group: str
    steps: int | None
    reported_at: datetime
    metrics: dict[str, Any]
    batch_metrics: list[Any] | None
    is_plain: bool = False
    """True if all metrics are finite numbers or booleans, which need no look at each."""
