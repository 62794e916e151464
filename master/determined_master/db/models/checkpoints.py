"""Table of checkpoints."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, String, Text, text
from sqlalchemy.orm import Mapped, mapped_column

from determined.states import CheckpointRole, CheckpointState
from determined_master.db.models.base import Base, StateText


class CheckpointRow(Base):
    __tablename__ = "checkpoints"
    __table_args__ = (
        Index("ix_checkpoints_task", "task_id", "steps_completed"),
        Index("ix_checkpoints_time", "report_time", "uuid"),
        Index("ix_checkpoints_storage_id", "storage_id"),
        Index(
            "ix_checkpoints_deleting",
            "uuid",
            sqlite_where=text("state = 'DELETING'"),
            postgresql_where=text("state = 'DELETING'"),
        ),
    )

    uuid: Mapped[str] = mapped_column(String(64), primary_key=True)
    task_id: Mapped[str] = mapped_column(String(64))
    allocation_id: Mapped[str] = mapped_column(String(80))
    state: Mapped[CheckpointState] = mapped_column(StateText(CheckpointState))
    role: Mapped[CheckpointRole] = mapped_column(
        StateText(CheckpointRole), default=CheckpointRole.STATE, server_default=text("'state'")
    )
    steps_completed: Mapped[int]
    report_time: Mapped[datetime]
    resources: Mapped[dict[str, Any]]
    meta: Mapped[dict[str, Any]]
    size: Mapped[int]
    delete_error: Mapped[str | None] = mapped_column(Text)
    """Why its files could not be removed, in state DELETE_FAILED."""
    storage_id: Mapped[int | None]
    """Id of its storage backend; None for checkpoints of earlier versions."""
    removal_task_id: Mapped[str | None] = mapped_column(String(64))
    """The task that removes its files, in state DELETING, or that could not, in state DELETE_FAILED. None if the master
    does so itself, and for a failure that the deletion of its experiment tries again."""


class StorageBackendRow(Base):
    __tablename__ = "storage_backends"

    id: Mapped[int] = mapped_column(primary_key=True)
    digest: Mapped[str] = mapped_column(String(64), unique=True)
    """SHA-256 of ``config``."""
    config: Mapped[dict[str, Any]]
    """A ``checkpoint_storage`` section without its policy; it may hold keys."""
