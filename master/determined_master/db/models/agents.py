"""Tables of agents and their slots."""

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, String, Text, false
from sqlalchemy.orm import Mapped, mapped_column

from determined.states import InstanceState
from determined_master.db.models.base import Base, StateText


class AgentRow(Base):
    __tablename__ = "agents"

    id: Mapped[str] = mapped_column(String(255), primary_key=True)
    pool: Mapped[str] = mapped_column(String(255))
    hostname: Mapped[str] = mapped_column(String(255), default="")
    version: Mapped[str] = mapped_column(String(64), default="")
    container_runtime: Mapped[str] = mapped_column(String(16), default="process", server_default="process")
    """``process``, or the engine whose containers it starts."""
    enabled: Mapped[bool] = mapped_column(default=True)
    draining: Mapped[bool] = mapped_column(default=False)
    registered_at: Mapped[datetime]
    disconnected_at: Mapped[datetime | None]
    """Start of the reconnect window; None while the agent is connected."""
    lost: Mapped[bool] = mapped_column(default=False)
    """True if the reconnect window has expired."""
    clock_skew: Mapped[int] = mapped_column(default=0, server_default="0")
    """Seconds by which its clock is ahead of the master's; negative if it is behind, 0 if they agree."""
    origin: Mapped[str] = mapped_column(Text, default="", server_default="")
    """What people call what it runs in, such as ``Slurm job 550``; empty if it has no other name than its id."""
    leaves_at: Mapped[datetime | None]
    """When it will end by itself, as its provider says; None if that is not known."""
    leaves_why: Mapped[str] = mapped_column(Text, default="", server_default="")
    """Why it will end then: the end of a sentence."""
    has_time_limit: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True if it ends then by a limit that was known from its start, and not by a notice."""
    leaving: Mapped[bool] = mapped_column(default=False, server_default=false())
    """True if nothing new is placed on it because it ends soon."""


class AgentSlotRow(Base):
    __tablename__ = "agent_slots"

    agent_id: Mapped[str] = mapped_column(ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True)
    slot_id: Mapped[int] = mapped_column(primary_key=True)
    type: Mapped[str] = mapped_column(String(8))
    brand: Mapped[str] = mapped_column(String(255), default="")
    uuid: Mapped[str] = mapped_column(String(255), default="")
    enabled: Mapped[bool] = mapped_column(default=True)
    draining: Mapped[bool] = mapped_column(default=False)
    status: Mapped[str] = mapped_column(String(16), default="free", server_default="free")
    """As its agent sees it: ``free``, ``occupied`` by a program outside the cluster, ``idle`` under its task, or
    ``unhealthy``."""
    status_reason: Mapped[str] = mapped_column(Text, default="", server_default="")


class InstanceRow(Base):
    """An agent that the provider of its pool starts and ends; kept after its end."""

    __tablename__ = "instances"
    __table_args__ = (Index("ix_instances_state", "state"), Index("ix_instances_pool", "pool", "requested_at"))

    agent_id: Mapped[str] = mapped_column(String(64), primary_key=True)
    pool: Mapped[str] = mapped_column(String(255))
    state: Mapped[InstanceState] = mapped_column(StateText(InstanceState))
    provider: Mapped[dict[str, Any]]
    """Settings of the provider that started it. They also end it, whatever the settings of the master say by then."""
    requested_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    """Registration of its agent; None if it has not registered."""
    ended_at: Mapped[datetime | None]
    failure: Mapped[str] = mapped_column(Text, default="", server_default="")
    """Why it did not start."""
    end_failure: Mapped[str] = mapped_column(Text, default="", server_default="")
    """Why its provider could not end it the last time."""
    waiting: Mapped[str] = mapped_column(Text, default="", server_default="")
    """Why it waits in a queue outside the cluster, such as Slurm's; empty if it does not."""
    start_estimate: Mapped[datetime | None]
    """When it will probably start there; None if that is not known."""
