"""Table of log lines."""

from datetime import datetime

from sqlalchemy import Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from determined_master.db.base import Base, BigId


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
