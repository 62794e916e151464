"""Checks that the validation reports of a trial have the searcher's metric, and warns once if they do not."""

import difflib
import logging
from collections.abc import Mapping
from typing import Any

logger = logging.getLogger(__name__)


class SearcherMetricWatch:
    """Warns at the first validated step without the searcher's metric, and explains its absence at the end.

    Reports of the same step belong together: a step is complete when a later one begins or the trial ends.

    Args:
        metric: the configured name ``searcher.metric``; None watches nothing.
        continues: the trial was started from an earlier attempt, which may have reported the metric.
    """

    def __init__(self, metric: str | None, *, continues: bool = False) -> None:
        self._metric = metric
        self._continues = continues
        self._has_warned = False
        self._incomplete: int | None = None
        """The step that was validated without the metric so far."""
        self._last: int | None = None
        """The last step that was validated with it."""
        self._has_arrived = False
        self._names: set[str] = set()
        self._trained = False

    def training(self, steps: int) -> None:
        """Records a report of training metrics."""
        self._trained = True
        self._complete(before=steps)

    def validation(self, steps: int, metrics: Mapping[str, Any]) -> None:
        """Records a validation after ``steps`` batches; warns once if the step before did not have the metric."""
        if self._metric is None:
            return
        self._complete(before=steps)
        self._names.update(metrics)
        if self._metric in metrics:
            self._has_arrived, self._incomplete, self._last = True, None, steps
        elif steps != self._last:
            self._incomplete = steps

    def _complete(self, before: int) -> None:
        if self._incomplete is not None and self._incomplete != before:
            self._warn(f"the validation after {self._incomplete} batches has no value of the searcher's metric")
            self._incomplete = None

    def _warn(self, what: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            logger.warning("%s", self._text(what))

    def interrupted(self) -> None:
        """Records a preemption: a later attempt may report the metric."""
        self._continues = True

    def end(self) -> None:
        """Logs an error at the end of a complete trial if the metric never arrived: then no checkpoint is the best."""
        if self._metric is None:
            return
        if self._incomplete is not None and not self._continues:
            self._complete(before=self._incomplete + 1)
        if self._has_arrived or self._continues:
            return
        if self._names:
            logger.error("%s", self._text("the trial ended without any value of the searcher's metric"))
        elif self._trained:
            logger.warning(
                'the trial ended without a validation: the searcher\'s metric "%s" has no value, so no checkpoint is '
                "the best one; report it with report_validation_metrics",
                self._metric,
            )

    def _text(self, what: str) -> str:
        near = difflib.get_close_matches(str(self._metric), sorted(self._names), n=1)
        hint = f'; did you mean "{near[0]}"?' if near else "."
        names = ", ".join(sorted(self._names)) or "nothing"
        return (
            f'{what} "{self._metric}": validations reported {names}{hint} Without it no trial and no checkpoint is '
            "the best one: correct searcher.metric or report that metric."
        )
