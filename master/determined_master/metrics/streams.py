"""Curves as the older API asks for them: samples, snapshots and names, streamed while something changes."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.metrics.wire import BatchesPart, DownsampledMetrics, MetricNamesPart, SamplePart, SnapshotPart
from determined_master.streaming import Streamed
from determined_master.trials.wire import Trial
from determined_master.wire.model import Wire

router = APIRouter(prefix="/api/v1", tags=["series"])


class ComparableTrial(Wire):
    trial: Trial
    metrics: list[DownsampledMetrics]


class CompareAnswer(Wire):
    trials: list[ComparableTrial]


class CompareQuery(Wire):
    trial_ids: Annotated[list[int], Query()] = []
    max_datapoints: int = 0
    metric_names: Annotated[list[str], Query()] = []
    metric_ids: Annotated[list[str], Query()] = []
    """``<group>.<name>``"""
    start_batches: int = 0
    end_batches: int = 0
    metric_type: str = ""
    group: str = ""


class StreamQuery(Wire):
    """What every stream of one metric asks. ``period_seconds`` 0: one answer and no more."""

    metric_name: str = ""
    metric_type: str = ""
    group: str = ""
    period_seconds: int = 0


class SampleQuery(StreamQuery):
    max_trials: int = 0
    max_datapoints: int = 0
    start_batches: int = 0
    end_batches: int = 0


class SnapshotQuery(StreamQuery):
    batches_processed: int = 0
    batches_margin: int = 0


@router.get("/trials/time-series")
async def compare_trials(asked: Annotated[CompareQuery, Query()], _principal: Anyone) -> CompareAnswer:
    raise NotImplementedYet("this master does not offer CompareTrials yet")


@router.get("/experiments/metrics-stream/metric-names", response_model=Streamed[MetricNamesPart])
async def stream_metric_names(
    _principal: Anyone,
    ids: Annotated[list[int], Query()] = [],  # noqa: B006
    period_seconds: Annotated[int, Query(alias="periodSeconds")] = 0,
) -> StreamingResponse:
    raise NotImplementedYet("this master does not offer ExpMetricNames yet")


@router.get("/experiments/{experiment_id}/metrics-stream/batches", response_model=Streamed[BatchesPart])
async def stream_metric_batches(
    experiment_id: int, asked: Annotated[StreamQuery, Query()], _principal: Anyone
) -> StreamingResponse:
    raise NotImplementedYet("this master does not offer MetricBatches yet")


@router.get("/experiments/{experiment_id}/metrics-stream/trials-sample", response_model=Streamed[SamplePart])
async def stream_trials_sample(
    experiment_id: int, asked: Annotated[SampleQuery, Query()], _principal: Anyone
) -> StreamingResponse:
    raise NotImplementedYet("this master does not offer TrialsSample yet")


@router.get("/experiments/{experiment_id}/metrics-stream/trials-snapshot", response_model=Streamed[SnapshotPart])
async def stream_trials_snapshot(
    experiment_id: int, asked: Annotated[SnapshotQuery, Query()], _principal: Anyone
) -> StreamingResponse:
    raise NotImplementedYet("this master does not offer TrialsSnapshot yet")
