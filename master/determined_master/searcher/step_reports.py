"""Joins the validations that a trial reports at one step: some code reports each metric on its own. Pure."""

from collections.abc import Set
from dataclasses import dataclass, field, replace
from typing import Any

from determined_master.searcher.actions import TrialValidated


@dataclass
class _Step:
    """What a trial has reported at its newest step. ``metrics``: empty once they were complete."""

    steps: int
    metrics: dict[str, Any] = field(default_factory=dict)
    is_complete: bool = False


class StepReports:
    """``needed``: the metrics without which a step cannot be used."""

    def __init__(self, needed: Set[str]) -> None:
        self._needed = needed
        self._steps: dict[str, _Step] = {}

    def add(self, report: TrialValidated) -> list[TrialValidated]:
        """Returns what can be judged now: the step before, if it has ended without a needed metric, and this one, once
        its reports have all of them. A trial that was restarted may report its last step again."""
        former = self._steps.get(report.request_id)
        validations: list[TrialValidated] = []
        if former is not None and not former.is_complete and former.steps < report.steps:
            validations.append(TrialValidated(report.request_id, former.steps, former.metrics))
        step = former if former is not None and former.steps == report.steps else _Step(report.steps)
        self._steps[report.request_id] = step
        if step.is_complete:
            return validations
        metrics = {**step.metrics, **report.metrics}
        if self._needed <= metrics.keys():
            validations.append(replace(report, metrics=metrics) if step.metrics else report)
            step.metrics, step.is_complete = {}, True
        else:
            step.metrics = metrics
        return validations

    def close(self, request_id: str) -> TrialValidated | None:
        """Forgets a trial. Returns its last step if a needed metric of it never came."""
        step = self._steps.pop(request_id, None)
        return None if step is None or step.is_complete else TrialValidated(request_id, step.steps, step.metrics)

    def snapshot(self) -> dict[str, Any]:
        return {name: [step.steps, dict(step.metrics), step.is_complete] for name, step in self._steps.items()}

    def restore(self, snapshot: dict[str, Any]) -> None:
        self._steps = {
            name: _Step(steps, dict(metrics), is_complete) for name, (steps, metrics, is_complete) in snapshot.items()
        }
