"""Table of trials."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, ForeignKey, Index, String, Text, false, literal_column, text
from sqlalchemy.orm import Mapped, mapped_column

from determined.states import ExitReason, TrialState
from determined_master.db.models.base import Base, BigId, StateText

_ENDED = ("'COMPLETED'", "'CANCELED'", "'ERROR'")
_IS_LIVE = f"state NOT IN ({', '.join(_ENDED)})"


class TrialRow(Base):
    __tablename__ = "trials"
    __table_args__ = (
        Index("ix_trials_state", "state"),
        Index("ix_trials_live", "experiment_id", sqlite_where=text(_IS_LIVE), postgresql_where=text(_IS_LIVE)),
        Index(
            "ix_trials_values_stale",
            "experiment_id",
            sqlite_where=text("values_stale = 1"),
            postgresql_where=text("values_stale"),
        ),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    experiment_id: Mapped[int] = mapped_column(ForeignKey("experiments.id", ondelete="CASCADE"), index=True)
    request_id: Mapped[str] = mapped_column(String(36))
    task_id: Mapped[str] = mapped_column(String(64), unique=True)
    state: Mapped[TrialState] = mapped_column(StateText(TrialState))
    exit_reason: Mapped[ExitReason | None] = mapped_column(StateText(ExitReason))
    hparams: Mapped[dict[str, Any]]
    seed: Mapped[int]
    restarts: Mapped[int] = mapped_column(default=0)
    system_failures: Mapped[int] = mapped_column(default=0)
    """Number of consecutive system failures; reset by a report. Determines the back-off."""
    limits_without_checkpoint: Mapped[int] = mapped_column(default=0, server_default=text("0"))
    """Number of attempts in a row that had an agent's whole time, ended with it and saved no checkpoint."""
    retry_at: Mapped[datetime | None]
    run_id: Mapped[int] = mapped_column(default=0)
    """Number of attempts; also the newest allocation's run number."""
    run_start_steps: Mapped[int] = mapped_column(default=0)
    """Steps of the checkpoint from which the newest run started."""
    reported_run_id: Mapped[int] = mapped_column(default=0)
    """Newest run that has reported a metric."""
    closed: Mapped[bool] = mapped_column(default=False)
    """True once its end was recorded as a search event."""
    start_time: Mapped[datetime]
    end_time: Mapped[datetime | None]
    steps_completed: Mapped[int] = mapped_column(default=0)
    progress: Mapped[float] = mapped_column(default=0.0)
    runner_state: Mapped[str] = mapped_column(String(64), default="")
    invalid_hp: Mapped[bool] = mapped_column(default=False)
    searcher_metric_value: Mapped[float | None]
    latest_validation_id: Mapped[int | None]
    best_validation_id: Mapped[int | None]
    latest_checkpoint: Mapped[str | None] = mapped_column(String(64))
    warm_start_checkpoint: Mapped[str | None] = mapped_column(String(64))
    checkpoint_count: Mapped[int] = mapped_column(default=0)
    checkpoint_size: Mapped[int] = mapped_column(default=0)
    summary_metrics: Mapped[dict[str, Any]] = mapped_column(default=dict)
    run_metadata: Mapped[dict[str, Any]] = mapped_column(default=dict)
    last_report_at: Mapped[datetime | None]
    """Time of the last report: metrics, progress or a checkpoint."""
    health_warning: Mapped[str | None] = mapped_column(Text)
    """A sentence about the first metric that was not finite."""
    must_stop: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True once such a metric ends the trial (``health.nan: stop``)."""
    values_stale: Mapped[bool] = mapped_column(default=True)
    """True if the experiment index has to be updated for this trial."""

    @classmethod
    def is_live(cls) -> ColumnElement[bool]:
        """Returns the condition of a trial that has not ended, in the text of the index; see ``ContainerRow``."""
        return cls.state.not_in([literal_column(each) for each in _ENDED])
