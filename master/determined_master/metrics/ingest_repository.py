"""SQL of the metric store. Synchronous: it runs in the group-commit writer's thread."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, select, true, update

from determined_master.db.models import AllocationRow, ExperimentRow, MetricRow, SearchEventRow, TrialRow
from determined_master.db.models.base import table_of
from determined_master.db.statements.bulk_insert import copy_values
from determined_master.db.statements.nul import to_json
from determined_master.json_numbers import outward
from determined_master.metrics.report import Report

# Tables of SQLAlchemy Core, not ORM classes: a statement with a class costs more than SQLite itself.
_M = table_of(MetricRow)
_T = table_of(TrialRow)
_X = table_of(ExperimentRow)
_F = table_of(SearchEventRow)
_A = table_of(AllocationRow)
_SAVED = (
    "summary_metrics",
    "steps_completed",
    "reported_run_id",
    "best_validation_id",
    "latest_validation_id",
    "searcher_metric_value",
    "last_report_at",
    "health_warning",
    "must_stop",
)
_SAVE = (
    update(_T)
    .where(_T.c.id == bindparam("of_trial"))
    .values({name: bindparam(f"new_{name}") for name in _SAVED} | {"values_stale": true()})
)


class EarlierReport(NamedTuple):
    id: int
    metrics: dict[str, Any]
    signed_metric: float | None


class CurrentReport(NamedTuple):
    id: int
    group: str
    steps: int | None
    metrics: dict[str, Any]
    signed_metric: float | None


_COLUMNS = (
    *("trial_id", "run_id", "group", "steps", "reported_at"),
    *("metrics", "batch_metrics", "signed_metric", "archived"),
)
NewReport = tuple[int, int, str, int | None, int, str, str, float | None, bool]
"""The columns of a report that is stored for the first time, as ``copy_values`` takes them. Not a named tuple,
which takes three times as long to make."""


_NULL = to_json(None)


def new_report(report: Report, reported_at: int, signed: float | None) -> NewReport:
    """Returns the columns of a report. ``reported_at``: its time in microseconds. ``signed``: see ``MetricRow``."""
    return (
        report.trial_id,
        report.run_id,
        report.group,
        report.steps,
        reported_at,
        to_json(report.metrics if report.is_plain else outward(report.metrics)),
        _NULL if report.batch_metrics is None else to_json(outward(report.batch_metrics)),
        signed,
        False,
    )


def insert_many(connection: Connection, rows: Sequence[NewReport]) -> None:
    copy_values(connection, _M, _COLUMNS, rows)


def find(connection: Connection, report: Report) -> EarlierReport | None:
    key = {"trial_id": report.trial_id, "run_id": report.run_id, "of_group": report.group}
    if report.steps is None:
        found = connection.execute(_FIND_BY_TIME, {"reported_at": report.reported_at, **key}).first()
    else:
        found = connection.execute(_FIND_BY_STEPS, {"steps": report.steps, **key}).first()
    return EarlierReport(*found) if found is not None else None


_OF_GROUP = select(_M.c.id, _M.c.metrics, _M.c.signed_metric).where(
    _M.c.trial_id == bindparam("trial_id"), _M.c.run_id == bindparam("run_id"), _M.c.group == bindparam("of_group")
)
_FIND_BY_STEPS = _OF_GROUP.where(_M.c.steps == bindparam("steps"))
_FIND_BY_TIME = _OF_GROUP.where(_M.c.steps.is_(None), _M.c.reported_at == bindparam("reported_at"))


def update_metrics(connection: Connection, metric_id: int, metrics: dict[str, Any], signed: float | None) -> None:
    connection.execute(update(_M).where(_M.c.id == metric_id).values(metrics=metrics, signed_metric=signed))


def archive_beyond(connection: Connection, trial_id: int, run_id: int, steps: int) -> list[int]:
    """Archives older runs' rows beyond the checkpoint of this run's start, in every group; returns their ids."""
    result = connection.execute(
        update(_M)
        .where(
            _M.c.trial_id == trial_id,
            _M.c.run_id < run_id,
            _M.c.steps > steps,
            _M.c.archived.is_(False),
        )
        .values(archived=True)
        .returning(_M.c.id)
    )
    return list(result.scalars())


def archive_step(connection: Connection, report: Report) -> list[int]:
    """Archives older runs' rows of the same group and step; returns their ids."""
    result = connection.execute(
        update(_M)
        .where(
            _M.c.trial_id == report.trial_id,
            _M.c.group == report.group,
            _M.c.steps == report.steps,
            _M.c.run_id < report.run_id,
            _M.c.archived.is_(False),
        )
        .values(archived=True)
        .returning(_M.c.id)
    )
    return list(result.scalars())


def unarchived(connection: Connection, trial_id: int) -> list[CurrentReport]:
    query = (
        select(_M.c.id, _M.c.group, _M.c.steps, _M.c.metrics, _M.c.signed_metric)
        .where(_M.c.trial_id == trial_id, _M.c.archived.is_(False))
        .order_by(_M.c.steps, _M.c.id)
    )
    return [CurrentReport(*row) for row in connection.execute(query)]


def best_and_latest(left: Sequence[CurrentReport]) -> tuple[CurrentReport | None, CurrentReport | None]:
    """Returns a trial's best and its latest validation."""
    validations = [row for row in left if row.group == "validation"]
    ranked = [row for row in validations if row.signed_metric is not None]
    best = min(ranked, key=lambda row: (row.signed_metric, row.id), default=None)
    return best, validations[-1] if validations else None


def best_signed(connection: Connection, trial_id: int) -> float | None:
    query = select(func.min(_M.c.signed_metric)).where(_M.c.trial_id == trial_id, _M.c.archived.is_(False))
    value: float | None = connection.execute(query).scalar_one()
    return value


def newest_steps(connection: Connection, trial_id: int, run_id: int) -> dict[str, int]:
    query = (
        select(_M.c.group, func.max(_M.c.steps).label("steps"))
        .where(_M.c.trial_id == trial_id, _M.c.run_id == run_id, _M.c.steps.is_not(None))
        .group_by(_M.c.group)
    )
    return {row.group: row.steps for row in connection.execute(query)}


def older_steps(connection: Connection, trial_id: int, run_id: int) -> int:
    """Returns the largest step of older runs that is not archived; -1 without one."""
    query = select(func.max(_M.c.steps)).where(
        _M.c.trial_id == trial_id, _M.c.run_id < run_id, _M.c.archived.is_(False)
    )
    value: int | None = connection.execute(query).scalar_one()
    return -1 if value is None else value


class LoadedTrial(NamedTuple):
    """What the store keeps of a trial."""

    id: int
    experiment_id: int
    run_id: int
    run_start_steps: int
    reported_run_id: int
    steps_completed: int
    searcher_metric: str
    smaller_is_better: bool
    summary_metrics: dict[str, Any]
    best_validation_id: int | None
    latest_validation_id: int | None
    searcher_metric_value: float | None
    last_report_at: datetime | None
    health_warning: str | None
    must_stop: bool


_OF_EXPERIMENT = ("searcher_metric", "smaller_is_better")
_LOAD = (
    select(*(_X.c[name] if name in _OF_EXPERIMENT else _T.c[name] for name in LoadedTrial._fields))
    .join(_X, _X.c.id == _T.c.experiment_id)
    .where(_T.c.id.in_(bindparam("ids", expanding=True)))
)


def load_trials(connection: Connection, trial_ids: Collection[int]) -> list[LoadedTrial]:
    return [LoadedTrial(*row) for row in connection.execute(_LOAD, {"ids": list(trial_ids)})]


class HealthFacts(NamedTuple):
    """What a warning about a trial needs. ``allocation_id``: its newest attempt; None if it has none."""

    task_id: str
    allocation_id: str | None
    config: dict[str, Any]


def health_facts(connection: Connection, trial_id: int) -> HealthFacts:
    """Returns the facts of one trial; asked for once, at its first metric that is not finite."""
    newest = select(_A.c.id).where(_A.c.task_id == _T.c.task_id).order_by(_A.c.run_id.desc()).limit(1)
    query = (
        select(_T.c.task_id, newest.scalar_subquery(), _X.c.config)
        .join(_X, _X.c.id == _T.c.experiment_id)
        .where(_T.c.id == trial_id)
    )
    return HealthFacts(*connection.execute(query).one())


def save_trials(connection: Connection, values: Sequence[dict[str, Any]]) -> None:
    """Updates trials by one compiled statement: building it each time costs more than running it."""
    renamed = [{f"new_{name}": value[name] for name in _SAVED} | {"of_trial": value["id"]} for value in values]
    if renamed:
        connection.execute(_SAVE, renamed)


def clear_system_failures(connection: Connection, trial_id: int) -> None:
    """Resets the back-off: a report shows that the trial works."""
    connection.execute(update(_T).where(_T.c.id == trial_id).values(system_failures=0))


def add_validated_fact(connection: Connection, experiment_id: int, report: Report, metrics: dict[str, Any]) -> None:
    fact = {
        "experiment_id": experiment_id,
        "trial_id": report.trial_id,
        "kind": "validated",
        "payload": {"steps": report.steps, "metrics": metrics},
        "heard": False,
    }
    connection.execute(_ADD_FACT, fact)


_ADD_FACT = insert(_F)
