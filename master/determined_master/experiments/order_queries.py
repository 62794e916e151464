"""Orders of the list of experiments: by a column, or by what their trials add up to."""

from typing import Any, Literal

from sqlalchemy import ColumnElement, SQLColumnExpression, case, func, select

from determined.states import ExperimentState
from determined_master.db.models import ExperimentRow, TrialRow
from determined_master.db.statements.sort_keys import Keys, directed, in_order_of_life, missing_last

Order = Literal[
    "id",
    "name",
    "description",
    "start_time",
    "end_time",
    "state",
    "progress",
    "user_id",
    "parent_id",
    "pool",
    "project_id",
    "trials",
    "checkpoints",
    "checkpoint_size",
    "searcher_metric",
]


def _of_trials(value: ColumnElement[Any]) -> ColumnElement[Any]:
    query = select(value).where(TrialRow.experiment_id == ExperimentRow.id)
    return query.correlate(ExperimentRow).scalar_subquery()


def _sum(column: SQLColumnExpression[int]) -> ColumnElement[Any]:
    return _of_trials(func.coalesce(func.sum(column), 0))


_BEST = _of_trials(
    case(
        (ExperimentRow.smaller_is_better, func.min(TrialRow.searcher_metric_value)),
        else_=func.max(TrialRow.searcher_metric_value),
    )
)
_KEYS: dict[Order, Keys] = {
    "id": (),
    "end_time": missing_last(ExperimentRow.end_time),
    "state": in_order_of_life(ExperimentRow.state, ExperimentState),
    "parent_id": missing_last(ExperimentRow.parent_id),
    "trials": (_of_trials(func.count(TrialRow.id)),),
    "checkpoints": (_sum(TrialRow.checkpoint_count),),
    "checkpoint_size": (_sum(TrialRow.checkpoint_size),),
    "searcher_metric": missing_last(_BEST),
}


def order_by(by: Order, *, descending: bool) -> list[ColumnElement[Any]]:
    """Returns what ``ORDER BY`` takes; equal experiments follow their ids in the same direction."""
    keys = _KEYS.get(by)
    return directed(
        (*((getattr(ExperimentRow, by),) if keys is None else keys), ExperimentRow.id), descending=descending
    )
