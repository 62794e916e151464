"""Tables of agents and their slots."""

from datetime import datetime

from sqlalchemy import ForeignKey, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from determined_master.db.base import Base


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
