"""Table of metric reports."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, text
from sqlalchemy.orm import Mapped, mapped_column

from determined_master.db.models.base import Base, BigId


class MetricRow(Base):
    """One report. ``steps`` is None for groups that are keyed by their time (the profiler's)."""

    __tablename__ = "metrics"
    __table_args__ = (
        Index("uq_metrics_step", "trial_id", "group", "steps", "run_id", unique=True),
        Index("ix_metrics_run", "trial_id", "run_id"),
        Index(
            "uq_metrics_time",
            "trial_id",
            "run_id",
            "group",
            "reported_at",
            unique=True,
            sqlite_where=text("steps IS NULL"),
            postgresql_where=text("steps IS NULL"),
        ),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    trial_id: Mapped[int] = mapped_column(ForeignKey("trials.id", ondelete="CASCADE"))
    run_id: Mapped[int]
    group: Mapped[str] = mapped_column(String(255))
    steps: Mapped[int | None]
    reported_at: Mapped[datetime]
    metrics: Mapped[dict[str, Any]]
    batch_metrics: Mapped[list[Any] | None]
    archived: Mapped[bool] = mapped_column(default=False)
    signed_metric: Mapped[float | None]
    """Searcher metric of a validation, negated if larger is better: the smallest is always best."""
