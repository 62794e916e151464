"""Wire models of trials and their workloads."""

from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from determined_master.api.schemas.base import Int64, Json, Name, Number, Pagination, RowId, Time, Wire
from determined_master.api.schemas.enums import checkpoint_state, state, wire_state
from determined_master.api.schemas.metrics import Metrics
from determined_master.db.models import CheckpointRow, MetricRow, TrialRow


class MetricsWorkload(Wire):
    metrics: Metrics
    num_inputs: int = 0
    total_batches: int
    end_time: Time | None = None


class CheckpointWorkload(Wire):
    state: str
    total_batches: int
    end_time: Time | None = None
    metadata: Json = {}
    resources: dict[str, Int64] = {}
    uuid: str


class WorkloadContainer(Wire):
    """One workload. It has the key of its kind only, as in Determined, whose clients look which key there is."""

    training: MetricsWorkload | None = None
    validation: MetricsWorkload | None = None
    checkpoint: CheckpointWorkload | None = None

    @model_serializer(mode="wrap")
    def _of_one_kind(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value is not None}


class Trial(Wire):
    id: int
    experiment_id: int
    state: str
    """State as older clients know it: PAUSED while it is pausing."""
    display_state: str
    hparams: Json
    restarts: int
    start_time: Time
    total_batches_processed: int
    best_checkpoint: CheckpointWorkload | None = None
    best_validation: MetricsWorkload | None = None
    checkpoint_count: int = 0
    end_time: Time | None = None
    failure: str | None = None
    """Cause of its failure; an extension of the older API."""
    health_warning: str | None = None
    """Its first metric that was NaN or infinite; an extension."""
    latest_validation: MetricsWorkload | None = None
    log_policy_matched: str | None = None
    log_retention_days: int | None = None
    metadata: Json = {}
    runner_state: str = ""
    searcher_metric_value: Number | None = None
    summary_metrics: Json = {}
    task_id: str = ""
    task_ids: list[str] = []
    total_checkpoint_size: Int64 = 0
    wall_clock_time: float | None = None
    warm_start_checkpoint_uuid: str | None = None


class TrialAnswer(Wire):
    trial: Trial


class TrialsAnswer(Wire):
    trials: list[Trial]
    pagination: Pagination


class WorkloadsAnswer(Wire):
    workloads: list[WorkloadContainer]
    pagination: Pagination


class ProgressBody(Wire):
    progress: float = 0.0
    is_raw: bool = False


class RunnerBody(Wire):
    state: Annotated[str, Field(max_length=4096)] = ""


class EarlyExitBody(Wire):
    reason: Name


class MetadataBody(Wire):
    metadata: dict[str, Any] = {}


class MetadataAnswer(Wire):
    metadata: Json


class RunStartBody(Wire):
    run_id: RowId
    checkpoint_storage: dict[str, Any] | None = None


class RunStartAnswer(Wire):
    storage_id: int | None = None


def metrics_workload(row: MetricRow, *, batches: bool = False) -> MetricsWorkload:
    return MetricsWorkload(
        metrics=Metrics(avg_metrics=row.metrics, batch_metrics=(row.batch_metrics or []) if batches else []),
        total_batches=row.steps or 0,
        end_time=row.reported_at,
    )


def checkpoint_workload(row: CheckpointRow) -> CheckpointWorkload:
    return CheckpointWorkload(
        state=checkpoint_state(row.state),
        total_batches=row.steps_completed,
        end_time=row.report_time,
        metadata=row.meta,
        resources=row.resources,
        uuid=row.uuid,
    )


def trial(
    row: TrialRow,
    *,
    shown: str,
    best: MetricRow | None = None,
    latest: MetricRow | None = None,
    best_checkpoint: CheckpointRow | None = None,
    failure: str | None = None,
    policy: str | None = None,
) -> Trial:
    """``policy``: the log policy that matched last."""
    ended = row.end_time
    return Trial(
        id=row.id,
        experiment_id=row.experiment_id,
        state=wire_state(shown),
        display_state=state(shown),
        hparams=row.hparams,
        restarts=row.restarts,
        start_time=row.start_time,
        total_batches_processed=row.steps_completed,
        best_validation=metrics_workload(best) if best else None,
        latest_validation=metrics_workload(latest) if latest else None,
        best_checkpoint=checkpoint_workload(best_checkpoint) if best_checkpoint else None,
        checkpoint_count=row.checkpoint_count,
        end_time=ended,
        failure=failure,
        health_warning=row.health_warning,
        log_policy_matched=policy,
        metadata=row.run_metadata,
        runner_state=row.runner_state,
        searcher_metric_value=row.searcher_metric_value,
        summary_metrics=row.summary_metrics,
        task_id=row.task_id,
        task_ids=[row.task_id],
        total_checkpoint_size=row.checkpoint_size,
        wall_clock_time=(ended - row.start_time).total_seconds() if ended else None,
        warm_start_checkpoint_uuid=row.warm_start_checkpoint,
    )
