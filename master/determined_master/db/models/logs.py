"""Tables of log lines, and of those that matched a log policy."""

from datetime import datetime

from sqlalchemy import Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from determined_master.db.models.base import Base, BigId


class LogRow(Base):
    __tablename__ = "task_logs"
    __table_args__ = (
        Index("ix_task_logs_task", "task_id", "id"),
        Index(
            "ix_task_logs_error",
            "task_id",
            "id",
            sqlite_where=text("is_error = 1"),
            postgresql_where=text("is_error"),
        ),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    task_id: Mapped[str] = mapped_column(String(64))
    allocation_id: Mapped[str | None] = mapped_column(String(80))
    agent_id: Mapped[str | None] = mapped_column(String(255))
    container_id: Mapped[str | None] = mapped_column(String(64))
    rank_id: Mapped[int | None]
    timestamp: Mapped[datetime]
    level: Mapped[str] = mapped_column(String(16), default="")
    stdtype: Mapped[str] = mapped_column(String(8), default="stdout")
    source: Mapped[str] = mapped_column(String(16), default="task")
    log: Mapped[str] = mapped_column(Text)
    is_error: Mapped[bool] = mapped_column(default=False)
    """True for an error line, by level or beginning; set when the line is stored."""


class LogPolicyMatchRow(Base):
    """The first line of an attempt that matched one of its log policies."""

    __tablename__ = "log_policy_matches"
    __table_args__ = (UniqueConstraint("allocation_id", "position"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    trial_id: Mapped[int] = mapped_column(index=True)
    task_id: Mapped[str] = mapped_column(String(64), index=True)
    allocation_id: Mapped[str] = mapped_column(String(80))
    position: Mapped[int]
    """Place of the policy in the configuration."""
    name: Mapped[str] = mapped_column(Text)
    """Empty for a policy without a name."""
    pattern: Mapped[str] = mapped_column(Text)
    action: Mapped[str | None] = mapped_column(String(16))
    agent_id: Mapped[str | None] = mapped_column(String(255))
    """The agent that wrote the line; None if it is unknown."""
    line: Mapped[str] = mapped_column(Text)
    """The beginning of the line."""
    is_void: Mapped[bool] = mapped_column(default=False)
    """True once its trial was continued by a user: it excludes its agent no longer."""
    time: Mapped[datetime]
    """When the master stored the line."""
