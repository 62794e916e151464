"""Tables of packed metric series."""

from sqlalchemy import ForeignKey, Index, LargeBinary, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from determined_master.db.models.base import Base, BigId


class SeriesRow(Base):
    """One metric of one trial, as far as it is packed."""

    __tablename__ = "series"
    __table_args__ = (Index("uq_series_name", "trial_id", "group", "name", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    trial_id: Mapped[int] = mapped_column(ForeignKey("trials.id", ondelete="CASCADE"))
    group: Mapped[str] = mapped_column(String(255))
    name: Mapped[str] = mapped_column(Text)
    points: Mapped[int] = mapped_column(default=0)
    packed_id: Mapped[int] = mapped_column(BigId, default=0)
    """Every point up to this report is packed."""


class ChunkRow(Base):
    """Neighbouring points of a series. ``factor`` 1: all of them; else the relevant ones of each ``factor`` points."""

    __tablename__ = "series_chunks"
    __table_args__ = (Index("uq_series_chunks_place", "series_id", "factor", "place", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    series_id: Mapped[int] = mapped_column(ForeignKey("series.id", ondelete="CASCADE"))
    factor: Mapped[int]
    place: Mapped[int]
    points: Mapped[int]
    """Number of points that it represents."""
    first_id: Mapped[int] = mapped_column(BigId)
    last_id: Mapped[int] = mapped_column(BigId)
    """First and last report of its points."""
    least_batches: Mapped[int] = mapped_column(BigId)
    most_batches: Mapped[int] = mapped_column(BigId)
    least_time: Mapped[int] = mapped_column(BigId)
    most_time: Mapped[int] = mapped_column(BigId)
    least_epoch: Mapped[float | None]
    most_epoch: Mapped[float | None]
    epochs: Mapped[int]
    """Number of points that have an epoch."""
    data: Mapped[bytes] = mapped_column(LargeBinary)


class SeriesCursorRow(Base):
    """Cursor: how far a trial's reports are packed."""

    __tablename__ = "series_cursors"

    trial_id: Mapped[int] = mapped_column(ForeignKey("trials.id", ondelete="CASCADE"), primary_key=True)
    packed_id: Mapped[int] = mapped_column(BigId, default=0)
    packed_run: Mapped[int] = mapped_column(default=0)
    """Run of that report; later reports belong to this run or to a newer one."""
    reached_id: Mapped[int] = mapped_column(BigId, default=0)
    """Reports up to this id are packed or about to be."""
    version: Mapped[int] = mapped_column(default=0)
    """Incremented when a report up to ``reached_id`` is changed, so that points of the old report are not written."""
    done_run: Mapped[int] = mapped_column(default=-1)
    """The run after whose end everything was packed."""
