"""Checkpoints: report, list, get, delete, download as one archive."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import StreamingResponse
from sqlalchemy import ColumnElement

from determined.errors import ApiError, BadRequest, NotFound
from determined.metric_directions import smaller_is_better
from determined.states import CheckpointState, state_phrase
from determined.storage.base import is_checkpoint_id
from determined_master.api.dependencies import (
    Anyone,
    AuthorizationDep,
    ClockDep,
    DatabaseDep,
    Owner,
    Read,
    Reader,
    SettingsDep,
    Task,
    TaskOrOwner,
)
from determined_master.api.json_body import JsonRoute
from determined_master.api.pagination import Window
from determined_master.api.queries import experiments as experiment_queries
from determined_master.api.schemas import checkpoints as schemas
from determined_master.api.schemas.base import Empty, RowId
from determined_master.api.schemas.enums import is_descending
from determined_master.auth.principal import Principal
from determined_master.checkpoints import archive, backend_repository, repository, storage
from determined_master.checkpoints.backend_repository import StoredCheckpoint
from determined_master.checkpoints.removal import BATCH_CHECKPOINTS, remove_files
from determined_master.checkpoints.repository import Order
from determined_master.checkpoints.storage_threads import in_thread
from determined_master.db.models import CheckpointRow, ExperimentRow
from determined_master.db.session import Database, ReadSession
from determined_master.db.statements.batches import batched
from determined_master.experiments import repository as experiment_rows
from determined_master.metrics import repository as metric_rows
from determined_master.trials import checkpoints as trial_checkpoints
from determined_master.trials import repository as trial_rows
from determined_master.users.authorization import Authorization

router = APIRouter(route_class=JsonRoute, tags=["checkpoints"])
States = Annotated[list[str], Query(alias="states")]
OrderBy = Annotated[str, Query(alias="orderBy")]
SortBy = Annotated[str, Query(alias="sortByAttr")]
SortMetric = Annotated[str, Query(alias="sortByMetric")]


async def checkpoint_id(uuid: Annotated[str, Path(json_schema_extra={"format": "uuid"})]) -> str:
    """Raises NotFound unless the id is a UUID: rows of earlier versions may have other names, and none is a path."""
    if not is_checkpoint_id(uuid):
        raise NotFound(f"checkpoint '{uuid[:80]}' not found")
    return uuid


CheckpointId = Annotated[str, Depends(checkpoint_id)]


@router.post("/api/v1/checkpoints")
async def report(body: schemas.ReportBody, principal: Task, database: DatabaseDep, clock: ClockDep) -> Empty:
    reported = trial_checkpoints.CheckpointReport(
        body.uuid, body.metadata, body.resources, body.task_id, body.allocation_id, body.role
    )
    async with database.write() as session:
        await trial_checkpoints.report(session, clock, reported, principal)
    return Empty()


@router.get("/api/v1/checkpoints/{uuid}")
async def get_checkpoint(uuid: CheckpointId, _principal: Anyone, session: Read) -> schemas.CheckpointAnswer:
    return schemas.CheckpointAnswer(checkpoint=await _show(session, await repository.get(session, uuid)))


@router.get("/api/v1/experiments/{experiment_id}/checkpoints")
async def of_experiment(
    experiment_id: RowId,
    _principal: Anyone,
    session: Read,
    state_names: States = [],  # noqa: B006
    order_by: OrderBy = "",
    sort_by: SortBy = "",
    sort_metric: SortMetric = "",
    offset: int = 0,
    limit: int = 0,
) -> schemas.CheckpointsAnswer:
    experiment = await experiment_rows.get(session, experiment_id)
    order = _order(experiment, sort_by, sort_metric, order_by)
    return await _list(session, experiment, repository.of_experiment(experiment_id), state_names, order, offset, limit)


@router.get("/api/v1/trials/{trial_id}/checkpoints")
async def of_trial(
    trial_id: RowId,
    _principal: Anyone,
    session: Read,
    state_names: States = [],  # noqa: B006
    order_by: OrderBy = "",
    sort_by: SortBy = "",
    sort_metric: SortMetric = "",
    offset: int = 0,
    limit: int = 0,
) -> schemas.CheckpointsAnswer:
    trial = await trial_rows.get(session, trial_id)
    experiment = await experiment_rows.get(session, trial.experiment_id)
    order = _order(experiment, sort_by, sort_metric, order_by)
    return await _list(session, experiment, repository.of_trial(trial_id), state_names, order, offset, limit)


@router.delete("/api/v1/checkpoints")
async def delete(
    body: schemas.DeleteBody,
    user: Owner,
    authorization: AuthorizationDep,
    clock: ClockDep,
    database: DatabaseDep,
    settings: SettingsDep,
) -> Empty:
    """Marks all, in lots, or none; their files are removed after that. Can be repeated if files remained.

    A task of the owner removes those that the master does not reach; the answer does not wait for it.
    """
    roots = storage.allowed_roots(settings)
    places = await _places(database, authorization, list(dict.fromkeys(body.checkpoint_uuids)), user)
    near = [
        StoredCheckpoint(uuid, where)
        for uuid, where in places.items()
        if where is None or await in_thread(storage.refuse_foreign, where, uuid, roots)
    ]
    for marked in batched(list(places), BATCH_CHECKPOINTS):
        async with database.write() as session:
            for uuid in marked:
                row = await repository.get(session, uuid)
                await trial_checkpoints.check_delete(session, authorization, row, user)
                await trial_checkpoints.mark_deleting(session, clock, row)
    failed: dict[str, str] = {}
    for some in batched(near, BATCH_CHECKPOINTS):
        failed |= await remove_files(database, clock, roots, some)
    if failed:
        said = [f"checkpoint {uuid} is not deleted: {why}; delete it again to retry" for uuid, why in failed.items()]
        raise ApiError("; ".join(said))
    return Empty()


@router.patch("/api/v1/checkpoints")
async def patch(
    body: schemas.PatchCheckpointsBody,
    principal: TaskOrOwner,
    database: DatabaseDep,
    authorization: AuthorizationDep,
    clock: ClockDep,
) -> Empty:
    """Stores which files of checkpoints are left after files were removed."""
    async with database.write() as session:
        for one in body.checkpoints:
            row = await repository.get(session, one.uuid)
            await trial_checkpoints.check_change(session, authorization, row, principal)
            if one.resources is not None and one.resources.resources is not None:
                await trial_checkpoints.set_resources(session, clock, row, one.resources.resources)
    return Empty()


@router.get("/checkpoints/{uuid}")
async def download(
    uuid: CheckpointId, request: Request, _principal: Reader, database: DatabaseDep, settings: SettingsDep
) -> StreamingResponse:
    # No session is open while the storage is accessed: hanging storage must not hold a connection.
    async with database.read() as session:
        row = await repository.get(session, uuid)
        if row.state not in (CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED):
            raise BadRequest(f"checkpoint {uuid} has no files to download: it is {state_phrase(row.state)}")
        where = await backend_repository.storage_of(session, uuid)
    if where is None:
        raise BadRequest(f"checkpoint {uuid} has no files to download: its experiment is deleted")
    entries = storage.entries(where, uuid, storage.allowed_roots(settings))
    return await archive.respond(entries, request.headers.get("accept", ""))


async def _places(
    database: Database, authorization: Authorization, uuids: list[str], user: Principal
) -> dict[str, dict[str, Any] | None]:
    """Returns the storage of each checkpoint; None if its trial is gone, then no file is touched."""
    places: dict[str, dict[str, Any] | None] = {}
    async with database.read() as session:
        for uuid in uuids:
            row = await repository.get(session, uuid)
            await trial_checkpoints.check_delete(session, authorization, row, user)
            places[uuid] = await backend_repository.storage_of(session, uuid)
    return places


def _order(experiment: ExperimentRow, sort_by: str, metric: str, order_by: str) -> Order:
    """Returns the sort order. By a metric, and if the client gives no direction, the best come first.

    A metric whose direction is not configured has that of the searcher's metric.
    """
    descending = is_descending(order_by)
    if order_by in ("", "ORDER_BY_UNSPECIFIED") and (metric or sort_by == "SORT_BY_SEARCHER_METRIC"):
        smaller = smaller_is_better(experiment.config, metric or experiment.searcher_metric)
        descending = not (experiment.smaller_is_better if smaller is None else smaller)
    return Order(sort_by, metric, not experiment.smaller_is_better, descending)


async def _list(
    session: ReadSession,
    experiment: ExperimentRow,
    whose: ColumnElement[bool],
    state_names: list[str],
    order: Order,
    offset: int,
    limit: int,
) -> schemas.CheckpointsAnswer:
    wanted = schemas.asked_states(state_names)
    total = await repository.count(session, whose, wanted)
    window = Window.of(offset, limit, total)
    most = None if window.limit is None else min(window.limit, total)
    rows = await repository.sorted_page(session, whose, wanted, order, offset=window.offset, limit=most)
    reports = await metric_rows.at_steps(session, {(trial.id, row.steps_completed) for row, trial in rows})
    config = await experiment_queries.masked_data(experiment)
    shown = [
        schemas.checkpoint(row, trial, experiment, reports.get((trial.id, row.steps_completed), []), config)
        for row, trial in rows
    ]
    return schemas.CheckpointsAnswer(checkpoints=shown, pagination=window.pagination(total, len(shown), limit))


async def _show(session: ReadSession, row: CheckpointRow) -> schemas.Checkpoint:
    trial = await trial_rows.find_by_task(session, row.task_id)
    if trial is None:
        return schemas.checkpoint(row, None, None, [], None)
    experiment = await experiment_rows.get(session, trial.experiment_id)
    place = (trial.id, row.steps_completed)
    reports = (await metric_rows.at_steps(session, {place})).get(place, [])
    return schemas.checkpoint(row, trial, experiment, reports, await experiment_queries.masked_data(experiment))
