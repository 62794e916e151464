"""Experiments with their best trials, loaded without all metrics of each trial."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.orm.attributes import set_committed_value

from determined_master.api.queries import experiments as experiment_queries
from determined_master.api.queries import trials as trial_reading
from determined_master.api.schemas.experiments import Experiment
from determined_master.api.schemas.trials import Trial
from determined_master.db.models import ExperimentRow
from determined_master.db.session import ReadSession
from determined_master.experiment_index import column_repository, repository
from determined_master.experiment_index.column_names import STATISTICS, Statistic
from determined_master.experiment_index.filter_sql import StoredColumn
from determined_master.experiments import repository as experiment_rows
from determined_master.json_numbers import outward
from determined_master.trials import repository as trial_rows


async def show(
    session: ReadSession, experiment_ids: Sequence[int], now: datetime | None = None
) -> list[tuple[Experiment, Trial | None]]:
    """Returns the experiments in the order of the ids. With the time ``now`` they have notes on running trials."""
    by_id = {row.id: row for row in await experiment_rows.get_many(session, experiment_ids)}
    rows = [by_id[i] for i in experiment_ids if i in by_id]
    shown = await experiment_queries.show(session, rows, now)
    summaries = await _summaries(session, rows)
    best = await trial_rows.without_metrics(session, [one.best_trial_id for one in shown if one.best_trial_id])
    for trial in best:
        set_committed_value(trial, "summary_metrics", summaries.get(trial.experiment_id, {}))
    trials = {trial.id: trial for trial in await trial_reading.show(session, best)}
    return [(one, trials.get(one.best_trial_id or 0)) for one in shown]


async def _summaries(session: ReadSession, rows: Sequence[ExperimentRow]) -> dict[int, dict[str, Any]]:
    """Returns the searcher's metric only, from the experiment index."""
    metrics = {row.searcher_metric for row in rows}
    ids = await column_repository.named(session, {f"validation.{metric}" for metric in metrics})
    stored: dict[tuple[str, Statistic], StoredColumn] = {
        (metric, statistic): StoredColumn(ids["metric", f"validation.{metric}"], statistic)
        for metric in metrics
        for statistic in STATISTICS
        if ("metric", f"validation.{metric}") in ids
    }
    columns = {f"{metric}.{statistic}": where for (metric, statistic), where in stored.items()}
    cells = await repository.cells(session, columns, [row.id for row in rows])
    summaries: dict[int, dict[str, Any]] = {}
    for row in rows:
        of_it = {s: cells[row.id].get(f"{row.searcher_metric}.{s}") for s in STATISTICS}
        if any(value is not None for value in of_it.values()):
            summaries[row.id] = {"validation_metrics": {row.searcher_metric: outward(of_it)}}
    return summaries
