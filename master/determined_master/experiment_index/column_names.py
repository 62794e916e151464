"""Parses names of columns: an experiment's own column, a hyperparameter, a metric's statistic, a configuration scalar.
Pure."""

from dataclasses import dataclass
from typing import Literal, get_args

Kind = Literal["experiment", "hyperparameter", "metric", "config"]
Type = Literal["number", "text", "date", "boolean"]
Statistic = Literal["last", "min", "max", "mean"]

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
MAX_NAME_LENGTH = 500
"""Longer names are not indexed: no list can show them."""


@dataclass(frozen=True)
class Own:
    """A column of the experiment itself."""

    name: str
    type: Type
    display_name: str


OWN: dict[str, Own] = {
    own.name: own
    for own in (
        Own("id", "number", "ID"),
        Own("name", "text", "Name"),
        Own("description", "text", "Description"),
        Own("tags", "text", "Tags"),
        Own("state", "text", "State"),
        Own("user", "text", "User"),
        Own("startTime", "date", "Start time"),
        Own("endTime", "date", "End time"),
        Own("duration", "number", "Duration"),
        Own("numTrials", "number", "Trials"),
        Own("searcherType", "text", "Searcher"),
        Own("searcherMetric", "text", "Searcher metric"),
        Own("searcherMetricsVal", "number", "Searcher metric value"),
        Own("progress", "number", "Progress"),
        Own("forkedFrom", "number", "Forked from"),
        Own("resourcePool", "text", "Resource pool"),
        Own("checkpointCount", "number", "Checkpoints"),
        Own("checkpointSize", "number", "Checkpoint size"),
        Own("archived", "boolean", "Archived"),
        Own("failure", "text", "Failure"),
    )
}


@dataclass(frozen=True)
class ColumnName:
    """A column that is stored in ``column_names``; of a metric one of its statistics."""

    column: str
    kind: Kind
    name: str
    statistic: Statistic = "last"
    metric: str = ""
    """The bare name of a metric, as lists show it beside the best value of the searcher's; else empty."""


@dataclass(frozen=True)
class ListedColumn:
    """A column with values, and the number of experiments that have one."""

    column: str
    kind: Kind
    type: Type
    count: int


def readings(column: str) -> list[ColumnName]:
    """Returns the possible meanings of ``column``, most likely first; a metric's group may be called ``hp`` too."""
    names: list[ColumnName] = []
    if column.startswith("hp."):
        names.append(ColumnName(column, "hyperparameter", column))
    elif column.startswith("config."):
        names.append(ColumnName(column, "config", column))
    name, _, statistic = column.rpartition(".")
    for known in STATISTICS:
        if statistic == known and "." in name:
            names.append(ColumnName(column, "metric", name, known))
    return names


def bare_readings(column: str) -> list[ColumnName]:
    """Returns the possible meanings of a name as lists and charts show it, most likely first.

    That is a hyperparameter without its prefix, else a metric: of validation, else of training.

    >>> [reading.name for reading in bare_readings("lr")]
    ['hp.lr', 'validation.lr', 'training.lr']
    """
    name, _, statistic = column.rpartition(".")
    names = [ColumnName(column, "hyperparameter", f"hp.{column}")]
    for group in ("validation", "training"):
        names.append(ColumnName(column, "metric", f"{group}.{column}", metric=column))
        names += [ColumnName(column, "metric", f"{group}.{name}", known) for known in STATISTICS if statistic == known]
    names.append(ColumnName(column, "metric", column))
    return names


def display_name(kind: Kind, column: str) -> str:
    """Returns the displayed name: a hyperparameter without its prefix."""
    return column.split(".", 1)[1] if kind == "hyperparameter" else column
