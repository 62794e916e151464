"""Streams of metric samples, snapshots and names, in the format of Determined."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from determined.errors import BadRequest
from determined_master.api.dependencies import Anyone, DatabaseDep, Read
from determined_master.api.json_lines import Streamed, json_lines
from determined_master.api.queries import trials as trial_queries
from determined_master.api.queries.metric_samples import (
    MAX_TRIALS,
    TYPES,
    Samples,
    batches,
    bounded,
    group_of,
    metric_names,
    parts,
    sample,
    snapshot,
)
from determined_master.api.schemas.base import BoundedInt, RowId, Wire
from determined_master.api.schemas.metrics import (
    BatchesPart,
    DownsampledMetrics,
    MetricNamesPart,
    SamplePart,
    SnapshotPart,
)
from determined_master.api.schemas.trials import Trial
from determined_master.experiments import repository as experiment_rows
from determined_master.metric_series.series import Name
from determined_master.trials import repository as trial_rows

router = APIRouter(prefix="/api/v1", tags=["series"])


class ComparableTrial(Wire):
    trial: Trial
    metrics: list[DownsampledMetrics]


class CompareAnswer(Wire):
    trials: list[ComparableTrial]


class CompareQuery(Wire):
    trial_ids: Annotated[list[RowId], Query()] = []
    max_datapoints: BoundedInt = 0
    metric_names: Annotated[list[str], Query()] = []
    metric_ids: Annotated[list[str], Query()] = []
    """Names as ``<group>.<name>``."""
    start_batches: BoundedInt = 0
    end_batches: BoundedInt = 0
    metric_type: str = ""
    group: str = ""


class StreamQuery(Wire):
    """Query of every stream of one metric. ``period_seconds`` 0: one answer only."""

    metric_name: str = ""
    metric_type: str = ""
    group: str = ""
    period_seconds: BoundedInt = 0


class SampleQuery(StreamQuery):
    max_trials: BoundedInt = 0
    max_datapoints: BoundedInt = 0
    start_batches: BoundedInt = 0
    end_batches: BoundedInt = 0


class SnapshotQuery(StreamQuery):
    batches_processed: BoundedInt = 0
    batches_margin: BoundedInt = 0


@router.get("/trials/time-series")
async def compare_trials(asked: Annotated[CompareQuery, Query()], _principal: Anyone, session: Read) -> CompareAnswer:
    names = [(group_of(asked.group, asked.metric_type), name) for name in asked.metric_names]
    for metric in asked.metric_ids:
        group, dot, name = metric.partition(".")
        if not dot:
            raise BadRequest(f"metricIds: {metric!r}: use the form <group>.<name>")
        names.append((group, name))
    names = list(dict.fromkeys(names))
    trials = [await trial_rows.get(session, trial_id) for trial_id in dict.fromkeys(asked.trial_ids)]
    question = bounded(asked.start_batches, asked.end_batches, asked.max_datapoints)
    sampled = await sample(session, [trial.id for trial in trials], names, question)
    return CompareAnswer(
        trials=[
            ComparableTrial(
                trial=shown,
                metrics=[
                    DownsampledMetrics(data=data, group=group, type=TYPES.get(group, "METRIC_TYPE_UNSPECIFIED"))
                    for group, data in sampled[shown.id].items()
                ],
            )
            for shown in await trial_queries.show(session, trials)
        ]
    )


@router.get("/experiments/metrics-stream/metric-names", response_model=Streamed[MetricNamesPart])
async def stream_metric_names(
    _principal: Anyone,
    session: Read,
    database: DatabaseDep,
    ids: Annotated[list[RowId], Query()] = [],  # noqa: B006
    period_seconds: Annotated[int, Query(alias="periodSeconds")] = 0,
) -> StreamingResponse:
    for experiment_id in ids:
        await experiment_rows.get(session, experiment_id)
    return json_lines(parts(database, ids, period_seconds, lambda session: metric_names(session, ids)))


@router.get("/experiments/{experiment_id}/metrics-stream/batches", response_model=Streamed[BatchesPart])
async def stream_metric_batches(
    experiment_id: RowId,
    asked: Annotated[StreamQuery, Query()],
    _principal: Anyone,
    session: Read,
    database: DatabaseDep,
) -> StreamingResponse:
    name = await _asked(session, experiment_id, asked)
    return json_lines(
        parts(
            database,
            [experiment_id],
            asked.period_seconds,
            lambda session: batches(session, experiment_id, name),
        )
    )


@router.get("/experiments/{experiment_id}/metrics-stream/trials-sample", response_model=Streamed[SamplePart])
async def stream_trials_sample(
    experiment_id: RowId,
    asked: Annotated[SampleQuery, Query()],
    _principal: Anyone,
    session: Read,
    database: DatabaseDep,
) -> StreamingResponse:
    name = await _asked(session, experiment_id, asked)
    question = bounded(asked.start_batches, asked.end_batches, asked.max_datapoints)
    one = Samples(experiment_id, name, question, asked.max_trials or MAX_TRIALS)
    return json_lines(parts(database, [experiment_id], asked.period_seconds, one.part))


@router.get("/experiments/{experiment_id}/metrics-stream/trials-snapshot", response_model=Streamed[SnapshotPart])
async def stream_trials_snapshot(
    experiment_id: RowId,
    asked: Annotated[SnapshotQuery, Query()],
    _principal: Anyone,
    session: Read,
    database: DatabaseDep,
) -> StreamingResponse:
    name = await _asked(session, experiment_id, asked)
    at, margin = asked.batches_processed, max(0, asked.batches_margin)
    return json_lines(
        parts(
            database,
            [experiment_id],
            asked.period_seconds,
            lambda s: snapshot(s, experiment_id, name, at, margin),
        )
    )


async def _asked(session: Read, experiment_id: int, asked: StreamQuery) -> Name:
    await experiment_rows.get(session, experiment_id)
    return group_of(asked.group, asked.metric_type), asked.metric_name
