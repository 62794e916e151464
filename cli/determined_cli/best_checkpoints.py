"""Chooses the best checkpoints by the searcher's metric or another one."""

from collections.abc import Mapping, Sequence
from typing import Any

from determined.errors import BadRequest, NotFound
from determined.metric_directions import GOALS, smaller_is_better
from determined_cli.output.states import without_prefix


def best(
    rows: Sequence[dict[str, Any]], config: Mapping[str, Any], metric: str | None = None, goal: str | None = None
) -> list[dict[str, Any]]:
    """Returns the stored checkpoints that have a value of a metric at their step, best first.

    ``metric`` is the searcher's if it is None. Raises BadRequest if neither ``goal`` nor the configuration gives the
    direction of another metric.

    >>> rows = [{"uuid": "a", "state": "COMPLETED", "searcher_metric": 0.3}]
    >>> rows += [{"uuid": "b", "state": "COMPLETED", "searcher_metric": None}]
    >>> rows += [{"uuid": "c", "state": "DELETED", "searcher_metric": 0.1}]
    >>> [row["uuid"] for row in best(rows, {"searcher": {"metric": "loss"}})]
    ['a']
    """
    searchers = (config.get("searcher") or {}).get("smaller_is_better", True)
    smaller = bool(searchers) if metric is None else smaller_is_better(config, metric)
    if goal is not None:
        smaller = GOALS[goal]
    if smaller is None:
        raise BadRequest(
            f"the configuration does not say which values of {metric} are better; add --goal minimize or "
            "--goal maximize, or name the metric under metric_goals in the configuration"
        )
    stored = [(_value(row, metric), row) for row in rows if without_prefix(row["state"]) == "COMPLETED"]
    rated = [(value, row) for value, row in stored if isinstance(value, int | float)]
    return [row for _, row in sorted(rated, key=lambda each: each[0], reverse=not smaller)]


def _value(row: Mapping[str, Any], metric: str | None) -> object:
    return row["searcher_metric"] if metric is None else reported(row).get(metric)


def reported(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the metrics of the validation at the step of a checkpoint."""
    validation = (row.get("training") or {}).get("validation_metrics") or {}
    return validation.get("avg_metrics") or validation.get("avgMetrics") or {}


def no_best(whose: str, metric: str, rows: Sequence[Mapping[str, Any]], *, is_searchers: bool = True) -> NotFound:
    """Returns the error that says why none of the checkpoints is the best one by the searcher's metric or another."""
    names = sorted({name for row in rows for name in reported(row)})
    known = f"validations reported {', '.join(names)}" if names else "no validation was reported there"
    number = "its checkpoint has" if len(rows) == 1 else f"none of its {len(rows)} checkpoints has"
    end = " no value" if len(rows) == 1 else " a value"
    named = f"the searcher's metric {metric}" if is_searchers else metric
    advice = "Correct searcher.metric" if is_searchers else "Correct --metric"
    return NotFound(
        f"{whose} has no best checkpoint: {number}{end} of {named} at its step ({known}). "
        f"{advice} or report that metric; --latest downloads the newest checkpoint"
    )
