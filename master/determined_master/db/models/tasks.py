"""Tables of jobs and tasks."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ForeignKey, Index, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from determined.states import ExitReason, TaskKind, TaskState, TokenScope
from determined_master.db.models.base import Base, BigId, StateText


class JobRow(Base):
    """What is queued: an experiment with all its trials, or one other task."""

    __tablename__ = "jobs"

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    pool: Mapped[str] = mapped_column(String(255))
    priority: Mapped[int] = mapped_column(default=42)
    """1 to 99; lower numbers come first."""
    weight: Mapped[float] = mapped_column(default=1.0)
    max_slots: Mapped[int | None]
    """Maximum number of slots that its tasks hold at once; None for no maximum."""
    position: Mapped[datetime]
    """Place in the queue among jobs of the same priority: the time of submission."""


class TaskRow(Base):
    """What runs in allocations. A trial's task holds only what all tasks have: the trial's row has the rest, and its
    state. The columns from ``state`` on are of other tasks."""

    __tablename__ = "tasks"
    __table_args__ = (
        Index("ix_tasks_state", "state"),
        Index("ix_tasks_kind", "kind", "created_at"),
    )

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    kind: Mapped[TaskKind] = mapped_column(StateText(TaskKind))
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), index=True)
    user_id: Mapped[int]
    experiment_id: Mapped[int | None] = mapped_column(BigId, index=True)
    token_scope: Mapped[TokenScope] = mapped_column(StateText(TokenScope))
    created_at: Mapped[datetime]
    state: Mapped[TaskState | None] = mapped_column(StateText(TaskState))
    """None for a trial."""
    ended_at: Mapped[datetime | None]
    description: Mapped[str] = mapped_column(Text, default="", server_default="")
    config: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    context_hash: Mapped[str | None] = mapped_column(String(64), index=True)
    context_size: Mapped[int] = mapped_column(default=0, server_default="0")
    workspace_id: Mapped[int | None]
    slots: Mapped[int] = mapped_column(default=0, server_default="0")
    spec: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Spec of its container, without what differs between attempts (see ``AllocationRow.spec``)."""
    agent_id: Mapped[str | None] = mapped_column(String(255))
    """The only agent that may run it; None for any."""
    environment_key: Mapped[str | None] = mapped_column(String(16))
    """Key of the Python environment that it builds."""
    run_id: Mapped[int] = mapped_column(default=0, server_default="0")
    """Number of attempts; also the newest allocation's run number."""
    failures: Mapped[int] = mapped_column(default=0, server_default="0")
    """Number of failed attempts that were followed by another one."""
    retry_at: Mapped[datetime | None]
    exit_reason: Mapped[ExitReason | None] = mapped_column(StateText(ExitReason))
    exit_code: Mapped[int | None]
    failure: Mapped[str | None] = mapped_column(Text)
    """One sentence about the cause of its failure, or of its end if the master has ended it."""
    idle_timeout: Mapped[float | None]
    """Seconds without use after which a service ends; None for never, and for other kinds."""
    last_used_at: Mapped[datetime | None]
    """When a service was used last, as stored now and then; None if it was not used."""


class EnvironmentWaitRow(Base):
    """A task that holds no slots because a Python environment is built for it on an agent, where an attempt lacked it.

    The row ends with the task's next attempt.
    """

    __tablename__ = "environment_waits"

    task_id: Mapped[str] = mapped_column(ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True)
    agent_id: Mapped[str] = mapped_column(String(255), primary_key=True)
    environment_key: Mapped[str] = mapped_column(String(16), primary_key=True)
    allocation_id: Mapped[str] = mapped_column(ForeignKey("allocations.id", ondelete="CASCADE"), index=True)
    """The attempt that lacked it, whose spec the build follows."""
    build_id: Mapped[str | None] = mapped_column(String(64))
    """The task that builds it; None until there is one."""
    is_over: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True once the build has ended, well or not: the next attempt does not ask this agent again."""
