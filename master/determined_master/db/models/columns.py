"""Tables of the experiment index."""

from sqlalchemy import ForeignKey, Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from determined_master.db.models.base import Base, BigId


class ColumnNameRow(Base):
    """Name of a hyperparameter, a metric (with its group, without its statistic) or a scalar of the configuration."""

    __tablename__ = "column_names"
    __table_args__ = (Index("uq_column_names_name", "name", "kind", unique=True),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    kind: Mapped[str] = mapped_column(String(16))
    name: Mapped[str] = mapped_column(String(512))
    type: Mapped[str] = mapped_column(String(8))


class ColumnValueRow(Base):
    """One experiment's value of one name. Clustered by name: a list looks at few names of many experiments.

    A number that no database orders (NaN) is its word in ``text``; a boolean is both. No foreign keys: there may be
    tens of millions of rows, and each would be looked up twice.
    """

    __tablename__ = "column_values"
    __table_args__ = (Index("ix_column_values_experiment", "experiment_id"), {"sqlite_with_rowid": False})

    name_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    experiment_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    number: Mapped[float | None]
    """Of a metric the last value."""
    text: Mapped[str | None] = mapped_column(Text)
    minimum: Mapped[float | None]
    maximum: Mapped[float | None]
    mean: Mapped[float | None]


class ColumnCountRow(Base):
    """Number of a project's experiments with a value of a name, and the range of the values. The range only widens."""

    __tablename__ = "column_counts"
    __table_args__ = ({"sqlite_with_rowid": False},)

    project_id: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    name_id: Mapped[int] = mapped_column(ForeignKey("column_names.id"), primary_key=True, autoincrement=False)
    count: Mapped[int]
    minimum: Mapped[float | None]
    maximum: Mapped[float | None]


class ExperimentSummaryRow(Base):
    """Values of an experiment's trials that lists show, so that lists do not read trials."""

    __tablename__ = "experiment_summaries"

    experiment_id: Mapped[int] = mapped_column(
        ForeignKey("experiments.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
    project_id: Mapped[int] = mapped_column(BigId)
    """Project in which its values are counted; follows the experiment's own."""
    num_trials: Mapped[int]
    trial_id: Mapped[int | None] = mapped_column(BigId)
    """The best trial, else the only one."""
    source_trial_id: Mapped[int | None] = mapped_column(BigId)
    """Trial whose metrics are shown: the best, else the only one, else the newest."""
    searcher_metric_value: Mapped[float | None]
    checkpoint_count: Mapped[int]
    checkpoint_size: Mapped[int] = mapped_column(BigId)
    failure: Mapped[str | None] = mapped_column(Text)
    """The cause of the first failed trial's last failure."""


class ExperimentLabelRow(Base):
    """A label of an experiment, written in the same transaction as the list on the experiment's row."""

    __tablename__ = "experiment_labels"
    __table_args__ = (Index("ix_experiment_labels_experiment", "experiment_id"), {"sqlite_with_rowid": False})
    MAX_CHARACTERS = 255

    label: Mapped[str] = mapped_column(String(255), primary_key=True)
    experiment_id: Mapped[int] = mapped_column(
        ForeignKey("experiments.id", ondelete="CASCADE"), primary_key=True, autoincrement=False
    )
