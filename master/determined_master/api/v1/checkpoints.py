"""Checkpoints: reported by tasks, listed, fetched, deleted, downloaded as one archive."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from sqlalchemy.ext.asyncio import AsyncSession

from determined.errors import BadRequest, Forbidden
from determined.states import CheckpointState
from determined_master.api.dependencies import Anyone, Read, ServicesDep, User, Write
from determined_master.api.pagination import page
from determined_master.api.schemas import checkpoints as schemas
from determined_master.api.schemas.base import Empty
from determined_master.api.schemas.enums import is_descending, states
from determined_master.checkpoints import archive, repository
from determined_master.checkpoints.storage import folder_of
from determined_master.db.models import CheckpointRow
from determined_master.experiments import repository as experiment_rows
from determined_master.metrics import repository as metric_rows
from determined_master.trials import checkpoints as trial_checkpoints
from determined_master.trials import repository as trial_rows

router = APIRouter(tags=["checkpoints"])
States = Annotated[list[str], Query(alias="states")]
OrderBy = Annotated[str, Query(alias="orderBy")]
SortBy = Annotated[str, Query(alias="sortByAttr")]
SortMetric = Annotated[str, Query(alias="sortByMetric")]


@router.post("/api/v1/checkpoints")
async def report(body: schemas.ReportBody, principal: Anyone, session: Write, services: ServicesDep) -> Empty:
    if principal.is_task and body.task_id and body.task_id != principal.task_id:
        raise Forbidden("this task's token may not report another task's checkpoint")
    await trial_checkpoints.report(session, services.clock, body, principal)
    return Empty()


@router.get("/api/v1/checkpoints/{uuid}")
async def get_checkpoint(uuid: str, _principal: Anyone, session: Read) -> schemas.CheckpointAnswer:
    return schemas.CheckpointAnswer(checkpoint=await _show(session, await repository.get(session, uuid)))


@router.get("/api/v1/experiments/{experiment_id}/checkpoints")
async def of_experiment(
    experiment_id: int,
    _principal: Anyone,
    session: Read,
    state_names: States = [],  # noqa: B006
    order_by: OrderBy = "",
    sort_by: SortBy = "",
    sort_metric: SortMetric = "",
    offset: int = 0,
    limit: int = 0,
) -> schemas.CheckpointsAnswer:
    await experiment_rows.get(session, experiment_id)
    tasks = [t.task_id for t in await trial_rows.of_experiment(session, experiment_id)]
    return await _list(session, tasks, state_names, order_by, sort_by, sort_metric, offset, limit)


@router.get("/api/v1/trials/{trial_id}/checkpoints")
async def of_trial(
    trial_id: int,
    _principal: Anyone,
    session: Read,
    state_names: States = [],  # noqa: B006
    order_by: OrderBy = "",
    sort_by: SortBy = "",
    sort_metric: SortMetric = "",
    offset: int = 0,
    limit: int = 0,
) -> schemas.CheckpointsAnswer:
    tasks = [(await trial_rows.get(session, trial_id)).task_id]
    return await _list(session, tasks, state_names, order_by, sort_by, sort_metric, offset, limit)


@router.delete("/api/v1/checkpoints")
async def delete(body: schemas.DeleteBody, _user: User, session: Write) -> Empty:
    for uuid in body.checkpoint_uuids:
        await trial_checkpoints.delete(session, await repository.get(session, uuid))
    return Empty()


@router.patch("/api/v1/checkpoints")
async def patch(body: schemas.PatchCheckpointsBody, principal: Anyone, session: Write) -> Empty:
    """What is left of checkpoints after files were removed."""
    for one in body.checkpoints:
        row = await repository.get(session, one.uuid)
        if principal.is_task and row.task_id != principal.task_id:
            raise Forbidden("this task's token may not change another task's checkpoint")
        if one.resources is not None and one.resources.resources is not None:
            await repository.set_resources(session, row, one.resources.resources)
    return Empty()


@router.get("/checkpoints/{uuid}")
async def download(uuid: str, request: Request, _principal: Anyone, session: Read) -> StreamingResponse:
    row = await repository.get(session, uuid)
    if row.state not in (CheckpointState.COMPLETED, CheckpointState.PARTIALLY_DELETED):
        raise BadRequest(f"checkpoint {uuid} is {row.state.value}")
    trial = await trial_rows.get_by_task(session, row.task_id)
    folder = folder_of(await trial_rows.storage_of(session, trial), uuid)
    return archive.stream(folder, request.headers.get("accept", ""))


async def _list(
    session: AsyncSession,
    tasks: list[str],
    state_names: list[str],
    order_by: str,
    sort_by: str,
    sort_metric: str,
    offset: int,
    limit: int,
) -> schemas.CheckpointsAnswer:
    rows = await repository.of_tasks(session, tasks, states(state_names, CheckpointState))
    shown = [await _show(session, row) for row in rows]
    if sort_metric or sort_by.endswith("SEARCHER_METRIC"):
        shown.sort(key=lambda c: _metric(c, sort_metric))
    elif sort_by in _SORT:
        shown.sort(key=_SORT[sort_by])
    if is_descending(order_by):
        shown.reverse()
    part, pagination = page(shown, offset, limit)
    return schemas.CheckpointsAnswer(checkpoints=part, pagination=pagination)


async def _show(session: AsyncSession, row: CheckpointRow) -> schemas.Checkpoint:
    trial = await trial_rows.find_by_task(session, row.task_id)
    if trial is None:
        return schemas.checkpoint(row, None, None, [])
    experiment = await experiment_rows.get(session, trial.experiment_id)
    return schemas.checkpoint(
        row, trial, experiment, list(await metric_rows.at_step(session, trial.id, row.steps_completed))
    )


def _metric(checkpoint: schemas.Checkpoint, name: str) -> tuple[bool, float]:
    """Those without the metric come last."""
    value: object = checkpoint.training.searcher_metric
    if name and checkpoint.training.validation_metrics:
        value = checkpoint.training.validation_metrics.avg_metrics.get(name)
    return (not isinstance(value, int | float), float(value) if isinstance(value, int | float) else 0.0)


_SORT = {
    "SORT_BY_UUID": lambda c: c.uuid,
    "SORT_BY_TRIAL_ID": lambda c: c.training.trial_id,
    "SORT_BY_BATCH_NUMBER": lambda c: c.metadata.get("steps_completed", 0),
    "SORT_BY_END_TIME": lambda c: c.report_time,
    "SORT_BY_STATE": lambda c: c.state,
}
