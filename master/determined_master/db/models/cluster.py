"""Tables of the cluster itself and of events."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from determined_master.db.models.base import Base, BigId


class ClusterRow(Base):
    """The only row of the cluster: its id, and how often its master has started."""

    __tablename__ = "cluster"

    id: Mapped[int] = mapped_column(primary_key=True)
    cluster_id: Mapped[str] = mapped_column(String(36))
    master_epoch: Mapped[int] = mapped_column(default=0)


class EventRow(Base):
    """An event, written in the transaction of the change that it records. Append only."""

    __tablename__ = "events"
    __table_args__ = (
        Index("ix_events_target", "target_type", "target_id"),
        Index("ix_events_kind", "kind", "id"),
        Index("ix_events_actor", "actor", "id"),
        Index("ix_events_target_type", "target_type", "id"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    time: Mapped[datetime]
    actor: Mapped[str] = mapped_column(String(255))
    kind: Mapped[str] = mapped_column(String(64))
    target_type: Mapped[str] = mapped_column(String(32))
    target_id: Mapped[str] = mapped_column(String(64))
    payload: Mapped[dict[str, Any]] = mapped_column(default=dict)
