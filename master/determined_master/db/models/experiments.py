"""Tables of experiments and search events."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, LargeBinary, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from determined.states import ExperimentState
from determined_master.db.models.base import Base, BigId, StateText


class ExperimentRow(Base):
    __tablename__ = "experiments"

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    job_id: Mapped[str] = mapped_column(String(36), unique=True)
    name: Mapped[str] = mapped_column(String(255))
    description: Mapped[str] = mapped_column(Text, default="")
    notes: Mapped[str] = mapped_column(Text, default="")
    labels: Mapped[list[str]] = mapped_column(default=list)
    state: Mapped[ExperimentState] = mapped_column(StateText(ExperimentState))
    config: Mapped[dict[str, Any]]
    original_config: Mapped[str] = mapped_column(Text)
    context_hash: Mapped[str | None] = mapped_column(String(64), index=True)
    context_size: Mapped[int] = mapped_column(default=0)
    user_id: Mapped[int] = mapped_column(ForeignKey("users.id"))
    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    parent_id: Mapped[int | None]
    archived: Mapped[bool] = mapped_column(default=False)
    progress: Mapped[float] = mapped_column(default=0.0)
    start_time: Mapped[datetime]
    end_time: Mapped[datetime | None]
    pool: Mapped[str] = mapped_column(String(255))
    """Copy of its job's, by which lists filter and sort; written with the job."""
    searcher_type: Mapped[str] = mapped_column(String(32))
    searcher_metric: Mapped[str] = mapped_column(String(255))
    smaller_is_better: Mapped[bool] = mapped_column(default=True)
    searcher_snapshot: Mapped[dict[str, Any]] = mapped_column(default=dict)
    searcher_cursor: Mapped[int] = mapped_column(default=0)
    best_trial_id: Mapped[int | None]
    best_metric: Mapped[float | None]
    values_stale: Mapped[bool] = mapped_column(default=True)
    """True if its configuration or project changed and the experiment index has to be updated."""
    retention_due: Mapped[bool] = mapped_column(default=False)
    """True from its end, or a change of its policy, until the policy has been applied to its checkpoints."""

    __table_args__ = (
        Index("ix_experiments_state", "state"),
        # Covers what every list reads, so that it does not read the rows, which are long.
        Index("ix_experiments_listed", "archived", "project_id", "state"),
        Index("ix_experiments_name", "name"),
        Index("ix_experiments_start_time", "start_time"),
        Index("ix_experiments_end_time", "end_time"),
        Index("ix_experiments_pool", "pool"),
        Index("ix_experiments_user", "user_id"),
        Index(
            "ix_experiments_values_stale",
            "values_stale",
            sqlite_where=text("values_stale = 1"),
            postgresql_where=text("values_stale"),
        ),
        Index(
            "ix_experiments_retention_due",
            "id",
            sqlite_where=text("retention_due = 1"),
            postgresql_where=text("retention_due"),
        ),
    )


class ExperimentCodeRow(Base):
    """The state of the code from which an experiment was created; only of those whose client sent it."""

    __tablename__ = "experiment_code"

    experiment_id: Mapped[int] = mapped_column(
        ForeignKey("experiments.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    commit_id: Mapped[str | None] = mapped_column(String(64))
    branch: Mapped[str | None] = mapped_column(Text)
    remote: Mapped[str | None] = mapped_column(Text)
    diff: Mapped[bytes] = mapped_column(LargeBinary)
    """Uncommitted changes, compressed by zlib, without secrets."""
    is_cut: Mapped[bool]
    untracked: Mapped[list[str]]


class SearchEventRow(Base):
    """A committed event for a searcher; processed in the order of ids."""

    __tablename__ = "search_facts"
    __table_args__ = (
        Index("ix_search_facts_experiment", "experiment_id", "id"),
        Index("ix_search_facts_heard", "heard"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    experiment_id: Mapped[int] = mapped_column(ForeignKey("experiments.id", ondelete="CASCADE"))
    trial_id: Mapped[int]
    kind: Mapped[str] = mapped_column(String(16))
    """``closed`` (payload: reason) or ``validated`` (payload: steps, metrics);
    ``limits`` and ``continued`` (payload: the fields of LimitsChanged and SearchContinued), which have trial 0."""
    payload: Mapped[dict[str, Any]] = mapped_column(default=dict)
    processed: Mapped[bool] = mapped_column("heard", default=False)
    """True once its searcher's cursor has passed it."""
