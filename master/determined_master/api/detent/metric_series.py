"""Metric series and summaries for the page's plots and tables."""

import math
from collections.abc import Sequence

import msgspec
from fastapi import APIRouter
from fastapi.responses import Response

from determined_master.api.dependencies import Anyone, Read
from determined_master.api.json_body import JsonRoute
from determined_master.api.queries import trials as trial_queries
from determined_master.api.queries.metric_names import named, summarised
from determined_master.api.schemas.base import RowId
from determined_master.api.schemas.metrics import (
    NamedMetrics,
    SeriesAnswer,
    SeriesBody,
    SummariesAnswer,
    SummariesBody,
    TrialSummary,
)
from determined_master.experiments import repository as experiment_rows
from determined_master.json_numbers import outward
from determined_master.metric_series import repository
from determined_master.metric_series.series import Question, SelectedSeries, known_and_missing, read
from determined_master.metric_series.series_points import Points
from determined_master.trials import repository as trial_rows

router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["series"])
MICROS = 1_000_000
MIN_POINTS = 10
MAX_POINTS = 250_000
"""Maximum number of points in one answer: with more series each has fewer."""


@router.post("/series", response_model=SeriesAnswer)
async def series(body: SeriesBody, _principal: Anyone, session: Read) -> Response:
    trials, missing = known_and_missing(body.trial_ids, await repository.cursors(session, body.trial_ids))
    names = list(dict.fromkeys((metric.group, metric.name) for metric in body.metrics))
    scale = MICROS if body.x == "time" else 1
    question = Question(
        axis=body.x,
        start=None if body.start is None else body.start * scale,
        end=None if body.end is None else body.end * scale,
        after=None if body.after is None else {i: round(time * MICROS) for i, time in body.after.items()},
        most=min(body.max_points, max(MIN_POINTS, MAX_POINTS // max(1, len(trials) * len(names)))),
    )
    # Not through the model: validating hundreds of thousands of numbers again would take longer than loading them.
    encoded = [_series(found) async for found in read(session, trials, names, question)]
    body_of = b'{"series":[%b],"missing":%b}' % (b",".join(encoded), msgspec.json.encode(missing))
    return Response(body_of, media_type="application/json")


def _series(selected: SelectedSeries) -> bytes:
    points = selected.points
    values = points.values.tolist()
    shown = {
        "trialId": selected.trial_id,
        "group": selected.group,
        "name": selected.name,
        "batches": points.batches.tolist(),
        "times": [time / MICROS for time in points.times],
        "epochs": _epochs(points),
        "values": values if math.isfinite(sum(values)) else outward(values),
        "count": selected.count,
        "total": selected.total,
    }
    return msgspec.json.encode(shown)


def _epochs(points: Points) -> Sequence[float | None] | None:
    if not points.has_epochs:
        return None
    return [epoch if epoch == epoch else None for epoch in points.epochs]


@router.get("/experiments/{experiment_id}/metric-names")
async def experiment_metric_names(experiment_id: RowId, _principal: Anyone, session: Read) -> NamedMetrics:
    experiment = await experiment_rows.get(session, experiment_id)
    trials = await trial_rows.of_experiment(session, experiment_id)
    metrics = named(trial.summary_metrics for trial in trials)
    return NamedMetrics(metrics=metrics, searcher_metric=experiment.searcher_metric)


@router.get("/trials/{trial_id}/metric-names")
async def trial_metric_names(trial_id: RowId, _principal: Anyone, session: Read) -> NamedMetrics:
    trial = await trial_rows.get(session, trial_id)
    experiment = await experiment_rows.get(session, trial.experiment_id)
    return NamedMetrics(metrics=named([trial.summary_metrics]), searcher_metric=experiment.searcher_metric)


@router.post("/trials/summaries")
async def trial_summaries(body: SummariesBody, _principal: Anyone, session: Read) -> SummariesAnswer:
    wanted = None if body.metrics is None else {(metric.group, metric.name) for metric in body.metrics}
    trials, _ = known_and_missing(body.trial_ids, await repository.cursors(session, body.trial_ids))
    rows = {row.id: row for row in await trial_rows.by_ids(session, [trial.trial_id for trial in trials])}
    words = await trial_queries.states(session, list(rows.values()))
    of = await experiment_rows.names_and_searchers(session, {row.experiment_id for row in rows.values()})
    return SummariesAnswer(
        trials=[
            TrialSummary(
                trial_id=row.id,
                experiment_id=row.experiment_id,
                experiment_name=of[row.experiment_id].name,
                searcher_metric=of[row.experiment_id].searcher_metric,
                smaller_is_better=of[row.experiment_id].smaller_is_better,
                hparams=row.hparams,
                state=words[row.id],
                metrics=summarised(row.summary_metrics, wanted, of[row.experiment_id].is_smaller_better),
            )
            for row in (rows[trial.trial_id] for trial in trials)
        ]
    )
