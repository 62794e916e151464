"""Checkpoints of one experiment or of all, and the outputs of an experiment, newest first, in pages."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query

from determined.errors import BadRequest, NotFound
from determined.states import CheckpointState
from determined_master.api.dependencies import Anyone, Read
from determined_master.api.schemas.base import Number, RowId, Time, Wire
from determined_master.api.schemas.enums import states
from determined_master.checkpoints import outputs_repository, repository
from determined_master.checkpoints.repository import CheckpointOfTrial
from determined_master.db.models import CheckpointRow, MetricRow
from determined_master.db.models.base import from_micros, to_micros
from determined_master.db.session import ReadSession
from determined_master.experiments import repository as experiment_rows
from determined_master.json_numbers import number
from determined_master.metrics import repository as metric_rows
from determined_master.trials import repository as trial_rows

router = APIRouter(prefix="/detent", tags=["detent"])

ShownState = Literal[
    "STATE_ACTIVE",
    "STATE_COMPLETED",
    "STATE_ERROR",
    "STATE_PARTIALLY_DELETED",
    "STATE_DELETING",
    "STATE_DELETE_FAILED",
    "STATE_DELETED",
]


class ListedCheckpoint(Wire):
    """``is_best``: best of its experiment by the searcher's metric. ``is_latest``: its trial resumes from it.
    ``delete_error``: why its files could not be removed."""

    uuid: str
    trial_id: int
    experiment_id: int
    experiment_name: str
    steps: int
    time: Time
    state: ShownState
    size: int
    files: int
    is_best: bool
    is_latest: bool
    validation: Number | None
    delete_error: str | None


class CheckpointList(Wire):
    """``next``: value of ``before`` for the next page; None on the last page."""

    checkpoints: list[ListedCheckpoint]
    next: str | None


class TrialOutputs(Wire):
    """Files that the script of one trial wrote. ``uuid``: of the checkpoint that holds them. ``size``: in bytes."""

    trial_id: int
    uuid: str
    time: Time
    size: int
    files: int
    folders: list[str]


class OutputsList(Wire):
    """``next``: value of ``before`` for the next page; None on the last page."""

    outputs: list[TrialOutputs]
    next: str | None


Before = Annotated[str, Query(max_length=128)]
Limit = Annotated[int, Query(ge=1, le=500)]
States = Annotated[list[str], Query(alias="state")]


@router.get("/experiments/{experiment_id}/checkpoints")
async def list_experiment_checkpoints(
    experiment_id: RowId,
    _principal: Anyone,
    session: Read,
    before: Before = "",
    limit: Limit = 100,
    state_names: States = [],  # noqa: B006
) -> CheckpointList:
    await experiment_rows.get(session, experiment_id)
    return await _list(session, experiment_id, before, limit, state_names)


@router.get("/checkpoints")
async def list_checkpoints(
    _principal: Anyone,
    session: Read,
    before: Before = "",
    limit: Limit = 100,
    experiment_id: Annotated[RowId | None, Query(alias="experimentId")] = None,
    state_names: States = [],  # noqa: B006
) -> CheckpointList:
    if experiment_id is not None:
        await experiment_rows.get(session, experiment_id)
    return await _list(session, experiment_id, before, limit, state_names)


@router.get("/experiments/{experiment_id}/outputs")
async def list_experiment_outputs(
    experiment_id: RowId,
    _principal: Anyone,
    session: Read,
    trial_id: Annotated[RowId | None, Query(alias="trialId")] = None,
    before: Before = "",
    limit: Limit = 100,
) -> OutputsList:
    """Returns the outputs that are kept, at most one for each trial, newest first."""
    await experiment_rows.get(session, experiment_id)
    if trial_id is not None and (await trial_rows.get(session, trial_id)).experiment_id != experiment_id:
        raise NotFound(f"experiment {experiment_id} has no trial {trial_id}")
    place = _place(before)
    rows = await outputs_repository.page(session, experiment_id, trial_id=trial_id, before=place, most=limit + 1)
    shown = [
        TrialOutputs(
            trial_id=trial,
            uuid=row.uuid,
            time=row.report_time,
            size=row.size,
            files=int(row.meta.get("files", 0)),
            folders=_texts(row.meta.get("outputs")),
        )
        for row, trial in rows[:limit]
    ]
    return OutputsList(outputs=shown, next=_end(rows[limit - 1][0]) if len(rows) > limit else None)


def _texts(value: object) -> list[str]:
    """Returns a list from the metadata, in which a task may write anything."""
    return [str(each) for each in value] if isinstance(value, list) else []


async def _list(
    session: ReadSession, experiment_id: RowId | None, before: str, limit: int, state_names: list[str]
) -> CheckpointList:
    rows = await repository.page(
        session,
        experiment_id=experiment_id,
        states=states(state_names, CheckpointState),
        before=_place(before),
        most=limit + 1,
    )
    page = rows[:limit]
    places = {(each.trial.id, each.row.steps_completed) for each in page}
    validations = await metric_rows.validations_at(session, places)
    best = await metric_rows.best_places(session, {each.experiment_id for each in page})
    shown = [
        _listed(
            each,
            validations.get((each.trial.id, each.row.steps_completed)),
            is_best=best.get(each.experiment_id) == (each.trial.id, each.row.steps_completed),
        )
        for each in page
    ]
    last = page[-1].row if len(rows) > limit else None
    return CheckpointList(checkpoints=shown, next=_end(last) if last else None)


def _listed(each: CheckpointOfTrial, validation: MetricRow | None, *, is_best: bool) -> ListedCheckpoint:
    row = each.row
    return ListedCheckpoint(
        uuid=row.uuid,
        trial_id=each.trial.id,
        experiment_id=each.experiment_id,
        experiment_name=each.experiment_name,
        steps=row.steps_completed,
        time=row.report_time,
        state=_STATES[row.state],
        size=row.size,
        files=sum(not name.endswith("/") for name in row.resources),
        is_best=is_best and row.state is CheckpointState.COMPLETED,
        is_latest=each.trial.latest_checkpoint == row.uuid,
        validation=number(validation.metrics.get(each.metric)) if validation else None,
        delete_error=row.delete_error,
    )


def _end(last: CheckpointRow) -> str:
    """Returns the value of ``before`` for the page that follows a row."""
    return f"{to_micros(last.report_time)}-{last.uuid}"


def _place(before: str) -> tuple[datetime, str] | None:
    """Returns the time and the id after which a page begins; None for the first page."""
    if not before:
        return None
    micros, _, uuid = before.partition("-")
    if not micros.isdecimal() or not 0 < len(micros) <= 16:
        raise BadRequest("before must be the value of next from an earlier page")
    return from_micros(int(micros)), uuid


_STATES: dict[CheckpointState, ShownState] = {
    CheckpointState.ACTIVE: "STATE_ACTIVE",
    CheckpointState.COMPLETED: "STATE_COMPLETED",
    CheckpointState.ERROR: "STATE_ERROR",
    CheckpointState.PARTIALLY_DELETED: "STATE_PARTIALLY_DELETED",
    CheckpointState.DELETING: "STATE_DELETING",
    CheckpointState.DELETE_FAILED: "STATE_DELETE_FAILED",
    CheckpointState.DELETED: "STATE_DELETED",
}
