"""Checkpoints as the wire shows them."""

from typing import Any

from determined.config.masking import masked
from determined_master.db.models import CheckpointRow, ExperimentRow, MetricRow, TrialRow
from determined_master.metrics.wire import Metrics
from determined_master.wire.enums import state
from determined_master.wire.model import Int64, Json, Number, Pagination, Time, Wire


class Training(Wire):
    experiment_config: Json | None = None
    experiment_id: int | None = None
    hparams: Json | None = None
    searcher_metric: Number | None = None
    training_metrics: Metrics | None = None
    trial_id: int | None = None
    validation_metrics: Metrics | None = None


class Checkpoint(Wire):
    uuid: str
    state: str
    metadata: Json
    resources: dict[str, Int64]
    training: Training
    allocation_id: str | None = None
    report_time: Time | None = None
    storage_id: int | None = None
    task_id: str | None = None


class CheckpointAnswer(Wire):
    checkpoint: Checkpoint


class CheckpointsAnswer(Wire):
    checkpoints: list[Checkpoint]
    pagination: Pagination


class ReportBody(Wire):
    uuid: str
    task_id: str | None = None
    allocation_id: str | None = None
    metadata: dict[str, Any] = {}
    resources: dict[str, int] = {}
    state: str = "STATE_COMPLETED"


class DeleteBody(Wire):
    checkpoint_uuids: list[str] = []


class PatchResources(Wire):
    resources: dict[str, int] | None = None


class PatchOne(Wire):
    uuid: str
    resources: PatchResources | None = None


class PatchBody(Wire):
    checkpoints: list[PatchOne] = []


def checkpoint(
    row: CheckpointRow, trial: TrialRow | None, experiment: ExperimentRow | None, at_step: list[MetricRow]
) -> Checkpoint:
    training = next((m for m in at_step if m.group == "training"), None)
    validation = next((m for m in at_step if m.group == "validation"), None)
    metric = validation.metrics.get(experiment.searcher_metric) if validation and experiment else None
    return Checkpoint(
        uuid=row.uuid,
        state=state(row.state),
        metadata=row.meta,
        resources=row.resources,
        allocation_id=row.allocation_id,
        report_time=row.report_time,
        task_id=row.task_id,
        training=Training(
            experiment_config=masked(experiment.config) if experiment else None,
            experiment_id=experiment.id if experiment else None,
            hparams=trial.hparams if trial else None,
            trial_id=trial.id if trial else None,
            training_metrics=Metrics(avg_metrics=training.metrics) if training else None,
            validation_metrics=Metrics(avg_metrics=validation.metrics) if validation else None,
            searcher_metric=metric if isinstance(metric, int | float) else None,
        ),
    )
