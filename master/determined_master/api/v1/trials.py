"""Trials: get, kill, progress, metadata, and reports of the task itself."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined.errors import BadRequest
from determined.states import TrialState
from determined_master import notifications
from determined_master.api.dependencies import (
    Anyone,
    ClockDep,
    DatabaseDep,
    Owner,
    Read,
    TaskOrOwner,
    TrialAccessDep,
    TrialsDep,
    Write,
)
from determined_master.api.json_body import JsonRoute
from determined_master.api.pagination import Window, page
from determined_master.api.queries import trials as trial_queries
from determined_master.api.schemas import trials as schemas
from determined_master.api.schemas.base import BoundedInt, Empty, RowId
from determined_master.api.schemas.enums import is_descending, states
from determined_master.api.sorting import check_member, column_of, refuse_given
from determined_master.checkpoints import backend_repository
from determined_master.db.session import notify
from determined_master.experiments import repository as experiment_rows
from determined_master.trials import repository

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["trials"])


@router.get("/experiments/{experiment_id}/trials")
async def list_trials(
    experiment_id: RowId,
    _principal: Anyone,
    session: Read,
    state_names: Annotated[list[str], Query(alias="states")] = [],  # noqa: B006
    sort_by: Annotated[str, Query(alias="sortBy")] = "",
    order_by: Annotated[str, Query(alias="orderBy")] = "",
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> schemas.TrialsAnswer:
    await experiment_rows.get(session, experiment_id)
    wanted = states(state_names, TrialState)
    by: repository.Order = column_of(sort_by, _ORDERS, "id")
    total = await repository.count(session, experiment_id, wanted)
    window = Window.of(offset, limit, total)
    rows = await repository.page(
        session,
        experiment_id,
        wanted,
        by=by,
        descending=is_descending(order_by),
        offset=window.offset,
        limit=window.limit,
    )
    pagination = window.pagination(total, len(rows), limit)
    return schemas.TrialsAnswer(trials=await trial_queries.show(session, rows), pagination=pagination)


@router.get("/trials/{trial_id}")
async def get_trial(trial_id: RowId, _principal: Anyone, session: Read) -> schemas.TrialAnswer:
    row = await repository.get(session, trial_id)
    return schemas.TrialAnswer(trial=(await trial_queries.show(session, [row]))[0])


@router.get("/trials/{trial_id}/workloads")
async def get_workloads(
    trial_id: RowId,
    _principal: Anyone,
    session: Read,
    group: str = "",
    metric_type: Annotated[str, Query(alias="metricType")] = "",
    batches: Annotated[bool, Query(alias="includeBatchMetrics")] = False,
    only: Annotated[str, Query(alias="filter")] = "",
    without_deleted: Annotated[bool, Query(alias="removeDeletedCheckpoints")] = False,
    sort_key: Annotated[str, Query(alias="sortKey")] = "",
    order_by: Annotated[str, Query(alias="orderBy")] = "",
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> schemas.WorkloadsAnswer:
    row = await repository.get(session, trial_id)
    if sort_key not in ("", "batches"):
        refuse_given(sortKey=sort_key)
    if metric_type == "METRIC_TYPE_PROFILING":
        refuse_given(metricType=metric_type)
    check_member("metricType", metric_type, _TYPES)
    check_member("filter", only, _KINDS)
    groups = [group] if group else _TYPES[metric_type]
    workloads = await trial_queries.workloads(session, row, groups=groups, batches=batches)
    workloads = [w for w in workloads if any(getattr(w, kind) for kind in _KINDS[only])]
    if without_deleted:
        workloads = [w for w in workloads if w.checkpoint is None or w.checkpoint.state != "STATE_DELETED"]
    if is_descending(order_by):
        workloads.reverse()
    shown, pagination = page(workloads, offset, limit)
    return schemas.WorkloadsAnswer(workloads=shown, pagination=pagination)


@router.post("/trials/{trial_id}/kill")
async def kill_trial(trial_id: RowId, user: Owner, session: Write, access: TrialAccessDep, trials: TrialsDep) -> Empty:
    await access.check_trial(session, user, trial_id)
    row = await repository.get(session, trial_id)
    await trials.stop(session, row, TrialState.STOPPING_KILLED, user.username)
    return Empty()


@router.post("/trials/{trial_id}/progress")
async def report_progress(
    trial_id: RowId,
    body: schemas.ProgressBody,
    principal: TaskOrOwner,
    database: DatabaseDep,
    access: TrialAccessDep,
    clock: ClockDep,
) -> Empty:
    async with database.write() as session:
        await access.check_trial(session, principal, trial_id)
        row = await repository.get(session, trial_id)
        await repository.change(session, row, progress=min(1.0, max(0.0, body.progress)), last_report_at=clock.now())
    return Empty()


@router.post("/trials/{trial_id}/runner/metadata")
async def report_runner_state(
    trial_id: RowId, body: schemas.RunnerBody, principal: TaskOrOwner, database: DatabaseDep, access: TrialAccessDep
) -> Empty:
    async with database.write() as session:
        await access.check_trial(session, principal, trial_id)
        row = await repository.get(session, trial_id)
        await repository.change(session, row, runner_state=body.state[:64])
    return Empty()


@router.post("/trials/{trial_id}/early_exit")
async def report_early_exit(
    trial_id: RowId, body: schemas.EarlyExitBody, principal: TaskOrOwner, database: DatabaseDep, access: TrialAccessDep
) -> Empty:
    async with database.write() as session:
        await access.check_trial(session, principal, trial_id)
        if body.reason not in ("EXITED_REASON_INVALID_HP", "EXITED_REASON_INIT_INVALID_HP"):
            raise BadRequest(f"a trial cannot report {body.reason}")
        await repository.change(session, await repository.get(session, trial_id), invalid_hp=True)
        notify(session, notifications.TRIALS)
    return Empty()


@router.post("/runs/start")
async def start_run(
    body: schemas.RunStartBody, principal: TaskOrOwner, session: Read, access: TrialAccessDep
) -> schemas.RunStartAnswer:
    await access.check_trial(session, principal, body.run_id)
    storage = await repository.storage_of(session, await repository.get(session, body.run_id))
    return schemas.RunStartAnswer(storage_id=await backend_repository.known_id(session, storage))


@router.get("/runs/{trial_id}/metadata")
async def get_metadata(trial_id: RowId, _principal: Anyone, session: Read) -> schemas.MetadataAnswer:
    return schemas.MetadataAnswer(metadata=(await repository.get(session, trial_id)).run_metadata)


@router.post("/runs/{trial_id}/metadata")
async def set_metadata(
    trial_id: RowId, body: schemas.MetadataBody, principal: TaskOrOwner, database: DatabaseDep, access: TrialAccessDep
) -> schemas.MetadataAnswer:
    async with database.write() as session:
        await access.check_trial(session, principal, trial_id)
        row = await repository.get(session, trial_id)
        await repository.change(session, row, run_metadata=body.metadata)
    return schemas.MetadataAnswer(metadata=body.metadata)


_TYPES: dict[str, list[str]] = {
    "": [],
    "METRIC_TYPE_UNSPECIFIED": [],
    "METRIC_TYPE_TRAINING": ["training"],
    "METRIC_TYPE_VALIDATION": ["validation"],
}
_KINDS = {
    "": ("training", "validation", "checkpoint"),
    "FILTER_OPTION_UNSPECIFIED": ("training", "validation", "checkpoint"),
    "FILTER_OPTION_VALIDATION": ("validation",),
    "FILTER_OPTION_CHECKPOINT": ("checkpoint",),
    "FILTER_OPTION_CHECKPOINT_OR_VALIDATION": ("checkpoint", "validation"),
}
_ORDERS: dict[str, repository.Order] = {
    "SORT_BY_ID": "id",
    "SORT_BY_START_TIME": "start_time",
    "SORT_BY_END_TIME": "end_time",
    "SORT_BY_STATE": "state",
    "SORT_BY_DURATION": "duration",
    "SORT_BY_CHECKPOINT_SIZE": "checkpoint_size",
    "SORT_BY_BATCHES_PROCESSED": "steps_completed",
    "SORT_BY_RESTARTS": "restarts",
    "SORT_BY_SEARCHER_METRIC_VAL": "searcher_metric_value",
    "SORT_BY_BEST_VALIDATION_METRIC": "searcher_metric_value",
    "SORT_BY_LATEST_VALIDATION_METRIC": "latest_searcher_metric",
}
