"""Tables of allocations, their containers and the slots that they hold."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, ColumnElement, ForeignKey, Index, String, Text, false, literal_column, text
from sqlalchemy.orm import Mapped, mapped_column

from determined.states import AllocationState, ContainerState, ExitReason
from determined_master.db.models.base import Base, BigId, StateText


class AllocationRow(Base):
    """An allocation: one attempt of a task. It does not depend on the kind of its task: the loops of trials and of
    other tasks read these columns."""

    __tablename__ = "allocations"
    __table_args__ = (
        Index("ix_allocations_state", "state"),
        Index("ix_allocations_pool_state", "pool", "state"),
        Index(
            "ix_allocations_unsettled",
            "state",
            "ended_at",
            sqlite_where=text("settled IS 0"),
            postgresql_where=text("settled IS false"),
        ),
    )

    id: Mapped[str] = mapped_column(String(80), primary_key=True)
    task_id: Mapped[str] = mapped_column(ForeignKey("tasks.id"), index=True)
    run_id: Mapped[int]
    state: Mapped[AllocationState] = mapped_column(StateText(AllocationState))
    slots: Mapped[int]
    pool: Mapped[str] = mapped_column(String(255))
    priority: Mapped[int] = mapped_column(default=42)
    owner: Mapped[str] = mapped_column(String(255))
    user_id: Mapped[int]
    submitted_at: Mapped[datetime]
    """Age within a priority: the experiment's submission, not this attempt's."""
    spec: Mapped[dict[str, Any]] = mapped_column(deferred=True, deferred_raiseload=True)
    """Spec of its containers (determined.link ContainerSpec without slots, rank and tokens). It is large, and only
    agents need it: queries of them undefer it."""
    waiting: Mapped[str] = mapped_column(Text, default="")
    """Reason for waiting; empty once placed."""
    preemption_timeout: Mapped[int] = mapped_column(default=3600)
    single_agent: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True if it must not be spread over several agents."""
    agent_id: Mapped[str | None] = mapped_column(String(255))
    """The only agent that may run it; None for any."""
    groups: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    """Groups of tasks that it asks for (see scheduling ``TaskGroup``); None for one of an earlier version, which has
    one group with ``slots``."""
    port_block: Mapped[int | None]
    """Block of its workers' ports; set at placement."""
    created_at: Mapped[datetime]
    placed_at: Mapped[datetime | None]
    ready_at: Mapped[datetime | None]
    preempt_requested_at: Mapped[datetime | None]
    preempted_for: Mapped[str | None] = mapped_column(String(80))
    """The allocation for which the scheduler asked this one to leave."""
    preempt_acked_at: Mapped[datetime | None]
    kill_requested_at: Mapped[datetime | None]
    agent_disabled: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True if it was killed because its agent, or a slot of it, was disabled."""
    agent_left: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True if it was asked to leave, or ended, because one of its agents leaves at a known time."""
    ended_at: Mapped[datetime | None]
    exit_reason: Mapped[ExitReason | None] = mapped_column(StateText(ExitReason))
    exit_code: Mapped[int | None]
    message: Mapped[str] = mapped_column(Text, default="")
    """Reason to end, from the request on; once ended, how it ended."""
    failure: Mapped[str | None] = mapped_column(Text)
    """One sentence about the cause of a failure; written at settlement."""
    settled: Mapped[bool] = mapped_column(default=False)
    """True once the loop of its task has settled its end."""


_IS_LIVE = "state != 'TERMINATED'"


class ContainerRow(Base):
    __tablename__ = "containers"
    __table_args__ = (
        Index("ix_containers_live", "agent_id", sqlite_where=text(_IS_LIVE), postgresql_where=text(_IS_LIVE)),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    allocation_id: Mapped[str] = mapped_column(ForeignKey("allocations.id", ondelete="CASCADE"), index=True)
    agent_id: Mapped[str] = mapped_column(String(255), index=True)
    rank: Mapped[int] = mapped_column(default=0)
    slot_ids: Mapped[list[int]]
    state: Mapped[ContainerState] = mapped_column(StateText(ContainerState))
    address: Mapped[str] = mapped_column(String(255), default="127.0.0.1")
    exit: Mapped[dict[str, Any] | None]
    output_offset: Mapped[int] = mapped_column(default=0)
    output_done: Mapped[bool] = mapped_column(default=False)
    runtime_id: Mapped[str] = mapped_column(String(128), default="", server_default="")
    """Id of the container on its engine; empty for a process."""
    needed_environment: Mapped[str] = mapped_column(String(16), default="", server_default="")
    """Key of the Python environment for which it waits on its agent; empty otherwise."""
    start_note: Mapped[str] = mapped_column(Text, default="", server_default="")
    """A reason why each start of it is slow, in words of its agent; empty if none is known."""

    @classmethod
    def is_live(cls) -> ColumnElement[bool]:
        """Returns the condition of a container that has not ended. Its text, without a parameter, is that of the index:
        otherwise a database reads all that ever ran."""
        return cls.state != literal_column("'TERMINATED'")


class SlotHoldRow(Base):
    """One slot that an allocation holds. The partial unique index guarantees that no slot is assigned twice."""

    __tablename__ = "slot_holds"
    __table_args__ = (
        Index(
            "uq_slot_holds_live",
            "agent_id",
            "slot_id",
            unique=True,
            sqlite_where=text("released_at IS NULL"),
            postgresql_where=text("released_at IS NULL"),
        ),
        Index("ix_slot_holds_released", "released_at", "held_at"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    allocation_id: Mapped[str] = mapped_column(ForeignKey("allocations.id", ondelete="CASCADE"), index=True)
    container_id: Mapped[str] = mapped_column(String(36))
    agent_id: Mapped[str] = mapped_column(String(255))
    slot_id: Mapped[int]
    held_at: Mapped[datetime]
    released_at: Mapped[datetime | None]
