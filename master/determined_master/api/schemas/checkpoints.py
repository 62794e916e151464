"""Wire models of checkpoints."""

from typing import Annotated, Any

import msgspec
from pydantic import AfterValidator, Field

from determined.states import CheckpointRole, CheckpointState
from determined.storage.base import CHECKPOINT_ID_PATTERN
from determined_master.api.schemas.base import Int64, Json, Name, Number, Pagination, Time, Wire
from determined_master.api.schemas.enums import KNOWN_CHECKPOINT_STATES, checkpoint_state, state, states
from determined_master.api.schemas.metrics import Metrics
from determined_master.db.models import CheckpointRow, ExperimentRow, MetricRow, TrialRow
from determined_master.json_numbers import number
from determined_master.trials.checkpoints import MAX_CHECKPOINT_BYTES


def _storable(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        msgspec.json.encode(metadata)
    except (OverflowError, RecursionError, UnicodeError) as error:
        raise ValueError(f"invalid metadata: {error}") from error
    return metadata


CheckpointId = Annotated[
    str, Field(pattern=f"^{CHECKPOINT_ID_PATTERN}$", json_schema_extra={"format": "uuid"}, max_length=36)
]
MAX_UUIDS = 1000
MAX_PATCHES = 100
MAX_FILES = 100_000
Resources = Annotated[
    dict[Annotated[str, Field(max_length=4096)], Annotated[int, Field(ge=0, le=MAX_CHECKPOINT_BYTES)]],
    Field(max_length=MAX_FILES),
]
"""Path of a file or (with a trailing slash) of a folder → its size in bytes."""


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
    delete_error: str | None = None
    display_state: str
    """Of this product: the state, also while a deletion lasts and after it failed."""
    removal_task_id: str | None = None
    """Of this product: the task that removes its files, or that could not."""
    role: CheckpointRole = CheckpointRole.STATE
    """Of this product: the state of a training, or outputs of a script, which no list of checkpoints has."""


class CheckpointAnswer(Wire):
    checkpoint: Checkpoint


class CheckpointsAnswer(Wire):
    checkpoints: list[Checkpoint]
    pagination: Pagination


class ReportBody(Wire):
    uuid: CheckpointId
    task_id: Name | None = None
    allocation_id: Name | None = None
    metadata: Annotated[dict[str, Any], AfterValidator(_storable)] = {}
    resources: Resources = {}
    state: Name = "STATE_COMPLETED"
    role: CheckpointRole = CheckpointRole.STATE


class DeleteBody(Wire):
    checkpoint_uuids: Annotated[list[CheckpointId], Field(max_length=MAX_UUIDS)] = []


class CheckpointResourcesPatch(Wire):
    resources: Resources | None = None


class PatchOne(Wire):
    uuid: CheckpointId
    resources: CheckpointResourcesPatch | None = None


class PatchCheckpointsBody(Wire):
    checkpoints: Annotated[list[PatchOne], Field(max_length=MAX_PATCHES)] = []


def asked_states(names: list[str]) -> list[CheckpointState]:
    """Parses a filter of older clients. Raises BadRequest for an unknown state."""
    asked = states(names, CheckpointState)
    return [*asked, *(own for own, known in KNOWN_CHECKPOINT_STATES.items() if known in asked and own not in asked)]


def checkpoint(
    row: CheckpointRow,
    trial: TrialRow | None,
    experiment: ExperimentRow | None,
    at_step: list[MetricRow],
    config: dict[str, Any] | None,
) -> Checkpoint:
    """Returns the wire model. ``config`` is the experiment's configuration without secrets."""
    training = next((m for m in at_step if m.group == "training"), None)
    validation = next((m for m in at_step if m.group == "validation"), None)
    metric = validation.metrics.get(experiment.searcher_metric) if validation and experiment else None
    return Checkpoint(
        uuid=row.uuid,
        state=checkpoint_state(row.state),
        metadata=row.meta,
        resources=row.resources,
        allocation_id=row.allocation_id,
        report_time=row.report_time,
        task_id=row.task_id,
        storage_id=row.storage_id,
        delete_error=row.delete_error,
        display_state=state(row.state),
        removal_task_id=row.removal_task_id,
        role=row.role,
        training=Training(
            experiment_config=config,
            experiment_id=experiment.id if experiment else None,
            hparams=trial.hparams if trial else None,
            trial_id=trial.id if trial else None,
            training_metrics=Metrics(avg_metrics=training.metrics) if training else None,
            validation_metrics=Metrics(avg_metrics=validation.metrics) if validation else None,
            searcher_metric=number(metric),
        ),
    )
