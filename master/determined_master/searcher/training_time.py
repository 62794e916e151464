"""Reads the searcher's metric and the training time from a validation report. Pure."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from determined.config.model import kind_of
from determined.config.search_plan import TrainingTime
from determined_master.json_numbers import number
from determined_master.searcher.actions import TrialValidated


class UnusableReport(Exception):
    """A report that a search cannot compare. Its text is for the owner of the experiment."""


class Diverged(UnusableReport):
    """The searcher's metric is not a finite number, which is a failure of this trial alone."""


def metric_of(report: TrialValidated, name: str, *, smaller_is_better: bool) -> float:
    """Returns the searcher's metric such that smaller is better."""
    value = _number(report, name, "the searcher's metric")
    if not math.isfinite(value):
        raise Diverged(f"the validation after {report.steps} batches reported {name} = {value}")
    return value if smaller_is_better else -value


def metrics_of_time(time: TrainingTime, records_per_epoch: int) -> set[str]:
    """Returns the metrics that ``time_of`` needs."""
    is_computed = time.unit == "batches" or not time.is_metric or (time.unit == "epochs" and records_per_epoch > 0)
    return set() if is_computed else {time.unit}


def time_of(
    report: TrialValidated, time: TrainingTime, records_per_epoch: int, batch_size: Callable[[], object]
) -> float:
    """Returns how long a trial has trained, in the unit of the search.

    Args:
        report: the validation.
        time: the unit, and whether it names a metric.
        records_per_epoch: length of an epoch, 0 if unknown.
        batch_size: returns the trial's ``global_batch_size``.
    """
    if time.unit == "batches":
        return report.steps
    if time.unit == "records" and not time.is_metric:
        return report.steps * _batch_size(report, batch_size())
    if time.unit == "epochs" and "epochs" not in report.metrics:
        if not records_per_epoch:
            raise UnusableReport(
                f"the validation after {report.steps} batches has no metric epochs, by which the search measures "
                "training time: report it, set records_per_epoch and the hyperparameter global_batch_size, or give "
                "the time in batches"
            )
        return report.steps * _batch_size(report, batch_size()) / records_per_epoch
    value = _number(report, time.unit, "the search's time metric")
    if not math.isfinite(value):
        raise UnusableReport(
            f"the validation after {report.steps} batches reported {time.unit} = {value}, by which the search "
            "measures training time (time_metric): it must be a finite number"
        )
    return value


def _number(report: TrialValidated, name: str, what: str) -> float:
    metrics: Mapping[str, Any] = report.metrics
    if name not in metrics:
        names = ", ".join(sorted(metrics)) or "nothing"
        raise UnusableReport(
            f"the validation after {report.steps} batches has no {name}, {what}; it reported {names}. "
            "Correct the searcher's configuration, or report the metric with each validation"
        )
    value = number(metrics[name])
    if value is None:
        raise UnusableReport(
            f"the validation after {report.steps} batches reported {name} as {kind_of(metrics[name])}; {what} must "
            "be a number"
        )
    return value


def _batch_size(report: TrialValidated, size: object) -> float:
    if isinstance(size, bool) or not isinstance(size, (int, float)) or size <= 0:
        raise UnusableReport(
            f"the training time after {report.steps} batches cannot be computed: the hyperparameter "
            "global_batch_size is not a positive number"
        )
    return size
