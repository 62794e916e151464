"""Stores reports of metrics in bulk, idempotent by (trial, run, group, steps); archives what a newer run replaces."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from sqlalchemy import Connection

from determined.errors import ApiError, BadRequest, NotFound, PreconditionFailed
from determined_master import notifications
from determined_master.clock import Clock
from determined_master.db.models.base import to_micros
from determined_master.json_numbers import number, outward
from determined_master.metrics import health, ingest_repository, series_invalidation_repository, summary
from determined_master.metrics.ingest_repository import NewReport
from determined_master.metrics.report import Report

QUICK_REPORTS = 64
Warn = Callable[[Connection, str, str | None, str, datetime], None]


@dataclass(slots=True)
class _Trial:
    """Cached data of a trial between groups."""

    experiment_id: int
    run_id: int
    run_start_steps: int
    reported_run_id: int
    steps_completed: int
    searcher_metric: str
    smaller_is_better: bool
    summary: dict[str, Any]
    best_signed: float | None
    reported: dict[str, "_ReportedSteps"] = field(default_factory=dict)
    """Group → steps that the newest run has surely not reported yet."""
    older_steps: int = -1
    """Largest step of an older run's report that is not archived."""
    best_validation_id: int | None = None
    latest_validation_id: int | None = None
    searcher_metric_value: float | None = None
    last_report_at: datetime | None = None
    health_warning: str | None = None
    must_stop: bool = False
    changed: bool = False


class _ReportedSteps:
    """The newest steps of a run in one group, so that most reports are known to be new without a query. ``floor``: at
    or below it anything may have been reported. Above it, exactly ``steps`` have been. Requests of one trial may be
    reordered, so the largest step alone is not enough."""

    __slots__ = ("floor", "steps")
    MAX_KEPT = 1024

    def __init__(self, floor: int) -> None:
        self.floor = floor
        self.steps: set[int] = set()

    def is_new(self, steps: int) -> bool:
        return steps > self.floor and steps not in self.steps

    def add(self, steps: int) -> None:
        self.steps.add(steps)
        if len(self.steps) > 2 * self.MAX_KEPT:
            *older, self.floor = sorted(self.steps)[: -self.MAX_KEPT]
            self.steps.difference_update(older, (self.floor,))


class SearchWaits(Protocol):
    """Says which searches wait for validations."""

    def search_waits_for(self, experiment_id: int) -> bool:
        """Called with the experiment of each stored validation. Returns True if its search is to process it at once."""
        ...


class MetricStore:
    """Implements the group-commit writer's Store. Refuses a stale run id, and another value for a reported step."""

    def __init__(self, clock: Clock, warn: Warn, searches: SearchWaits) -> None:
        """``warn`` adds a line to the log of a task. ``searches`` is asked about each validation."""
        self._clock = clock
        self._warn_in_log = warn
        self._trials: dict[int, _Trial] = {}
        self._searches = searches
        self._warned: set[str] = set()
        """Topics of the warnings since the last commit."""
        self._time: datetime | None = None
        self._micros = 0
        """The time of the last report, and what is stored of it."""

    def rolled_back(self) -> None:
        self._trials.clear()
        self._warned.clear()

    def forget(self, trial_ids: Iterable[int]) -> None:
        """Drops cached data; called after the commit of a transaction that changed a trial's run or removed it."""
        for trial_id in trial_ids:
            self._trials.pop(trial_id, None)

    def topics(self, operations: Sequence[Report]) -> set[str]:
        groups = {(report.trial_id, report.group) for report in operations}
        trials = map(self._trials.get, {trial_id for trial_id, _ in groups})
        topics = {notifications.metrics(trial.experiment_id) for trial in trials if trial is not None}
        validated = (self._trials.get(trial_id) for trial_id, group in groups if group == "validation")
        if any(trial is None or self._searches.search_waits_for(trial.experiment_id) for trial in validated):
            topics.add(notifications.SEARCH)
        if operations:
            topics.add(notifications.COLUMNS)
        warned, self._warned = self._warned, set()
        return topics | warned

    def is_quick(self, operations: Sequence[Report]) -> bool:
        """Returns False for a report that changes others, or of a trial that is not cached: those may be many."""
        return len(operations) <= QUICK_REPORTS and all(map(self._is_added, operations))

    def _is_added(self, report: Report) -> bool:
        """Returns True if all that the report can do is to be added."""
        trial = self._trials.get(report.trial_id)
        if trial is None or report.steps is None or trial.reported_run_id < trial.run_id:
            return False
        reported = trial.reported.get(report.group)
        return reported is not None and reported.is_new(report.steps) and report.steps > trial.older_steps

    def apply(self, connection: Connection, operations: Sequence[Report]) -> list[ApiError | None]:
        trial_ids = {report.trial_id for report in operations}
        self._load(connection, trial_ids)
        # A report's own time is that of its task's clock.
        now = self._clock.now()
        results: list[ApiError | None] = []
        fresh: list[NewReport] = []
        try:
            for report in operations:
                results.append(self._take(connection, report, fresh))
            for trial_id in trial_ids & self._trials.keys():
                self._trials[trial_id].last_report_at = now
            ingest_repository.insert_many(connection, fresh)
            self._save(connection, trial_ids)
        except BaseException:
            self._trials.clear()
            raise
        return results

    def _take(self, connection: Connection, report: Report, fresh: list[NewReport]) -> ApiError | None:
        trial = self._trials.get(report.trial_id)
        if trial is None:
            return NotFound(f"trial '{report.trial_id}' not found")
        if report.run_id != trial.run_id:
            return PreconditionFailed(
                f"stale run: trial {report.trial_id} is at run {trial.run_id}, this report is of run {report.run_id}"
            )
        if report.steps is None or report.group not in trial.reported:
            problem = _problem(report)
            if problem is not None:
                return problem
            trial.reported.setdefault(report.group, _ReportedSteps(-1))
        reported = trial.reported[report.group]
        if report.steps is None or not reported.is_new(report.steps):
            ingest_repository.insert_many(connection, fresh)
            fresh.clear()
            existing = ingest_repository.find(connection, report)
            if existing is not None:
                return self._merge(connection, trial, report, existing)
        if trial.reported_run_id < trial.run_id or (report.steps is not None and report.steps <= trial.older_steps):
            ingest_repository.insert_many(connection, fresh)  # the summary is computed from the database
            fresh.clear()
            self._overtake(connection, trial, report)
        if report.steps is not None:
            reported.add(report.steps)
            if report.steps > trial.steps_completed:
                trial.steps_completed = report.steps
        fresh.append(self._row(trial, report))
        summary.add(trial.summary, report.group, report.metrics, is_plain=report.is_plain)
        trial.changed = True
        self._warn(connection, trial, report)
        if report.group == "validation":
            ingest_repository.insert_many(connection, fresh)
            fresh.clear()
            self._validated(connection, trial, report)
        return None

    def _warn(self, connection: Connection, trial: _Trial, report: Report) -> None:
        """Logs the first metric of a trial that is not finite, and marks the trial if it is to stop because of it.
        Reports without a step, as of the profiler, are not looked at."""
        if report.is_plain or report.steps is None or trial.health_warning is not None:
            return
        sentence = health.not_finite(report.group, report.metrics, report.steps)
        if not sentence:
            return
        facts = ingest_repository.health_facts(connection, report.trial_id)
        trial.health_warning = sentence
        trial.must_stop = health.health_of(facts.config).nan == "stop"
        text = health.warning_line(sentence, stops=trial.must_stop)
        self._warn_in_log(connection, facts.task_id, facts.allocation_id, text, self._clock.now())
        self._warned |= {notifications.logs(facts.task_id), notifications.experiment(trial.experiment_id)}
        if trial.must_stop:
            self._warned.add(notifications.TRIALS)

    def _row(self, trial: _Trial, report: Report) -> NewReport:
        if report.reported_at is not self._time:  # all reports of a request have one
            self._time, self._micros = report.reported_at, to_micros(report.reported_at)
        signed = _signed(trial, report) if report.group == "validation" else None
        return ingest_repository.new_report(report, self._micros, signed)

    def _merge(
        self, connection: Connection, trial: _Trial, report: Report, existing: ingest_repository.EarlierReport
    ) -> ApiError | None:
        """Repeated report: identical values are ignored, new keys are merged, other values are refused."""
        reported = outward(report.metrics)
        other = sorted(k for k, v in reported.items() if k in existing.metrics and not _same(existing.metrics[k], v))
        if other:
            return BadRequest(
                f"{report.group} metrics of step {report.steps} were already reported with another value for "
                f"{', '.join(other)}; the first report is kept"
            )
        new = {k: v for k, v in reported.items() if k not in existing.metrics}
        if new:
            signed = existing.signed_metric
            if signed is None and report.group == "validation":
                signed = _signed(trial, report)
            merged = existing.metrics | new
            ingest_repository.update_metrics(connection, existing.id, merged, signed)
            series_invalidation_repository.unpack_from(connection, report.trial_id, existing.id)
            summary.add(trial.summary, report.group, {k: report.metrics[k] for k in new})
            trial.changed = True
            self._warn(connection, trial, report)
            if existing.signed_metric is None and signed is not None:
                _take_best(trial, existing.id, signed, report)
            if report.group == "validation":
                # A search joins the reports of a step, and may have missed a metric so far.
                ingest_repository.add_validated_fact(connection, trial.experiment_id, report, merged)
        return None

    def _overtake(self, connection: Connection, trial: _Trial, report: Report) -> None:
        """Archives reports of older runs for this step and, once per run, beyond the checkpoint from which it started.
        Best, latest and summary are computed anew from the remaining reports."""
        first = trial.reported_run_id < trial.run_id
        archived = (
            ingest_repository.archive_step(connection, report) if report.steps is not None and trial.run_id > 1 else []
        )
        if first:
            trial.reported_run_id = trial.run_id
        if first and trial.run_id > 1:
            archived += ingest_repository.archive_beyond(
                connection, report.trial_id, trial.run_id, trial.run_start_steps
            )
            ingest_repository.clear_system_failures(connection, report.trial_id)
        if archived:
            series_invalidation_repository.unpack_from(connection, report.trial_id, min(archived))
            left = ingest_repository.unarchived(connection, report.trial_id)
            trial.summary = summary.summarise((row.group, row.metrics) for row in left)
            trial.steps_completed = max([row.steps for row in left if row.steps is not None], default=0)
            best, latest = ingest_repository.best_and_latest(left)
            trial.best_signed = best.signed_metric if best else None
            trial.best_validation_id = best.id if best else None
            trial.latest_validation_id = latest.id if latest else None
            trial.searcher_metric_value = number(best.metrics.get(trial.searcher_metric)) if best else None

    def _validated(self, connection: Connection, trial: _Trial, report: Report) -> None:
        found = ingest_repository.find(connection, report)
        assert found is not None
        trial.latest_validation_id = found.id
        if found.signed_metric is not None:
            _take_best(trial, found.id, found.signed_metric, report)
        ingest_repository.add_validated_fact(connection, trial.experiment_id, report, outward(report.metrics))

    def _load(self, connection: Connection, trial_ids: set[int]) -> None:
        """Loads trials that are not cached: code that changes a trial's run, or removes one, calls ``forget``."""
        unknown = trial_ids - self._trials.keys()
        for row in ingest_repository.load_trials(connection, unknown) if unknown else ():
            is_new = not row.reported_run_id and not row.summary_metrics  # it has never reported
            newest = {} if is_new else ingest_repository.newest_steps(connection, row.id, row.run_id)
            self._trials[row.id] = _Trial(
                experiment_id=row.experiment_id,
                run_id=row.run_id,
                run_start_steps=row.run_start_steps,
                reported_run_id=row.reported_run_id,
                steps_completed=row.steps_completed,
                searcher_metric=row.searcher_metric,
                smaller_is_better=row.smaller_is_better,
                summary=json.loads(json.dumps(row.summary_metrics)),
                best_signed=None if is_new else ingest_repository.best_signed(connection, row.id),
                best_validation_id=row.best_validation_id,
                latest_validation_id=row.latest_validation_id,
                searcher_metric_value=row.searcher_metric_value,
                last_report_at=row.last_report_at,
                health_warning=row.health_warning,
                must_stop=row.must_stop,
                reported={group: _ReportedSteps(steps) for group, steps in newest.items()},
                older_steps=-1 if is_new else ingest_repository.older_steps(connection, row.id, row.run_id),
            )
        if len(self._trials) > 10_000:
            self._trials = {k: v for k, v in self._trials.items() if k in trial_ids}

    def _save(self, connection: Connection, trial_ids: set[int]) -> None:
        changed = [(i, t) for i in trial_ids if (t := self._trials.get(i)) is not None and t.changed]
        ingest_repository.save_trials(
            connection,
            [
                {
                    "id": trial_id,
                    "summary_metrics": trial.summary,
                    "steps_completed": trial.steps_completed,
                    "reported_run_id": trial.reported_run_id,
                    "best_validation_id": trial.best_validation_id,
                    "latest_validation_id": trial.latest_validation_id,
                    "searcher_metric_value": trial.searcher_metric_value,
                    "last_report_at": trial.last_report_at,
                    "health_warning": trial.health_warning,
                    "must_stop": trial.must_stop,
                }
                for trial_id, trial in changed
            ],
        )
        for _, trial in changed:
            trial.changed = False


def _take_best(trial: _Trial, metric_id: int, signed: float, report: Report) -> None:
    """Keeps a validation as the trial's best if it is better than the best so far."""
    if trial.best_signed is None or signed < trial.best_signed:
        trial.best_signed = signed
        trial.best_validation_id = metric_id
        trial.searcher_metric_value = number(report.metrics.get(trial.searcher_metric))


def _signed(trial: _Trial, report: Report) -> float | None:
    """Returns the searcher metric of a validation, see ``MetricRow``."""
    value = number(report.metrics.get(trial.searcher_metric))
    if value is None or value != value:
        return None
    return value if trial.smaller_is_better else -value


def _problem(report: Report) -> BadRequest | None:
    """Returns why no trial can make such a report."""
    if "." in report.group or not report.group:
        return BadRequest(f"metric group {report.group!r}: the name must not be empty or contain a dot")
    return None


def _same(first: object, second: object) -> bool:
    return bool(first == second)
