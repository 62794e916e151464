"""Wire models of reports, curves and summaries of metrics."""

from typing import Annotated, Any, Literal

from pydantic import Field

from determined_master.api.schemas.base import Json, Time, Wire
from determined_master.db.models import MetricRow

Axis = Literal["batches", "epochs", "time"]
MetricText = Annotated[str, Field(max_length=4096)]
TrialId = Annotated[int, Field(ge=0, lt=2**63)]
KnownTime = Annotated[float, Field(ge=0, le=1e11)]
Kind = Literal["number", "string", "boolean", "date", "object", "array", "null"]


class Metrics(Wire):
    avg_metrics: Json
    batch_metrics: list[Any] = []


class MetricsReport(Wire):
    archived: bool
    end_time: Time
    group: str
    id: int
    metrics: Json
    total_batches: int
    trial_id: int
    trial_run_id: int


class MetricName(Wire):
    group: MetricText
    name: MetricText


class SeriesBody(Wire):
    trial_ids: Annotated[list[TrialId], Field(min_length=1, max_length=100)]
    metrics: Annotated[list[MetricName], Field(min_length=1, max_length=50)]
    x: Axis = "batches"
    start: float | None = None
    """Bound of x in its unit: batches, epochs, Unix seconds. Inclusive, as is ``end``."""
    end: float | None = None
    max_points: Annotated[int, Field(ge=10, le=5000)] = 500
    after: Annotated[dict[TrialId, KnownTime], Field(max_length=100)] | None = None
    """By trial, the time of the last point that is known, in Unix seconds: it and later points are answered, by time.
    Not with ``start`` or ``end``. A trial that is not named is answered whole."""


class Series(Wire):
    """One metric of one trial; the lists have equal lengths and are ordered by x."""

    trial_id: int
    group: str
    name: str
    batches: list[int]
    times: list[float]
    """Unix seconds."""
    epochs: list[float | None] | None
    """None if no point has an epoch."""
    values: list[float | str]
    """``NaN``, ``Infinity`` and ``-Infinity`` as strings."""
    count: int
    """Number of points between ``start`` and ``end``, or from ``after`` on, before downsampling."""
    total: int
    """Number of points of the series, whatever was asked for."""


class SeriesAnswer(Wire):
    """One series for each metric of each known trial; it is empty if the trial has no such metric."""

    series: list[Series]
    missing: list[int]
    """Ids of unknown trials."""


class NamedMetric(Wire):
    group: str
    name: str
    type: Kind
    count: int
    """Number of its finite values."""


class NamedMetrics(Wire):
    metrics: list[NamedMetric]
    searcher_metric: str


class SummariesBody(Wire):
    trial_ids: Annotated[list[TrialId], Field(min_length=1, max_length=500)]
    metrics: Annotated[list[MetricName], Field(max_length=10_000)] | None = None
    """None selects all."""


class MetricSummary(Wire):
    group: str
    name: str
    last: float | str | bool | None
    """Lists and objects as JSON text."""
    min: float | None
    max: float | None
    mean: float | None
    count: int
    smaller_is_better: bool | None = None
    """None if the experiment's configuration does not give the direction."""


class TrialSummary(Wire):
    trial_id: int
    experiment_id: int
    experiment_name: str
    searcher_metric: str
    smaller_is_better: bool
    hparams: Json
    state: str
    metrics: list[MetricSummary]


class SummariesAnswer(Wire):
    """Summaries of the known trials, in the order of the request."""

    trials: list[TrialSummary]


class DataPoint(Wire):
    batches: int
    time: Time
    epoch: float | None = None
    values: Json = {}


class DownsampledMetrics(Wire):
    data: list[DataPoint]
    group: str
    type: str


class MetricNamesPart(Wire):
    metric_names: list[MetricName]
    searcher_metrics: list[str]
    training_metrics: list[str]
    validation_metrics: list[str]


class BatchesPart(Wire):
    batches: list[int]


class SampledTrial(Wire):
    trial_id: int
    hparams: Json
    data: list[DataPoint]


class SamplePart(Wire):
    trials: list[SampledTrial]
    promoted_trials: list[int]
    """Shown now and not in the previous part."""
    demoted_trials: list[int]


class SnapshotTrial(Wire):
    trial_id: int
    hparams: Json
    metric: float | str
    batches_processed: int


class SnapshotPart(Wire):
    trials: list[SnapshotTrial]


def metrics_report(row: MetricRow) -> MetricsReport:
    if row.group == "validation":
        shown: dict[str, Any] = {"validation_metrics": row.metrics}
    else:
        shown = {"avg_metrics": row.metrics, "batch_metrics": row.batch_metrics or None}
    return MetricsReport(
        archived=row.archived,
        end_time=row.reported_at,
        group=row.group,
        id=row.id,
        metrics=shown,
        total_batches=row.steps or 0,
        trial_id=row.trial_id,
        trial_run_id=row.run_id,
    )
