"""Experiments: list, get, change, continue, pause and other actions, labels, model definition."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined.errors import NotFound
from determined.states import ExperimentState
from determined_master.api.dependencies import (
    Anyone,
    AuthorizationDep,
    ClockDep,
    ContinuerDep,
    DatabaseDep,
    LifecycleDep,
    ModelDefsDep,
    Owner,
    Read,
    Reader,
    SettingsDep,
)
from determined_master.api.json_body import JsonRoute
from determined_master.api.queries import experiment_list
from determined_master.api.queries import experiments as experiment_queries
from determined_master.api.schemas import experiments as schemas
from determined_master.api.schemas.base import Empty, RowId
from determined_master.api.schemas.enums import states
from determined_master.experiments import repository
from determined_master.experiments.commands import edit
from determined_master.trials import totals_queries

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["experiments"])


@router.get("/experiments")
async def list_experiments(
    _principal: Anyone, session: Read, clock: ClockDep, filters: Annotated[experiment_list.Filters, Query()]
) -> schemas.ExperimentsAnswer:
    rows, pagination = await experiment_list.find(session, filters, states(filters.states, ExperimentState))
    shown = await experiment_queries.show(session, rows, clock.now())
    return schemas.ExperimentsAnswer(experiments=shown, pagination=pagination)


@router.post("/experiments/continue")
async def continue_experiment(
    body: schemas.ContinueBody, user: Owner, continuer: ContinuerDep, database: DatabaseDep
) -> schemas.ContinueAnswer:
    """Continues an experiment that has ended. ``overrideConfig``: settings to change, as YAML."""
    row = await continuer.resume(body.id, body.override_config or "", user)
    async with database.read() as session:
        return schemas.ContinueAnswer(experiment=(await experiment_queries.show(session, [row]))[0])


@router.get("/experiments/{experiment_id}")
async def get_experiment(experiment_id: RowId, _principal: Anyone, session: Read) -> schemas.ExperimentAnswer:
    row = await repository.get(session, experiment_id)
    shown = (await experiment_queries.show(session, [row]))[0]
    is_in_queue = row.state.is_live and shown.state != "STATE_PAUSED"
    state = "STATE_QUEUED" if shown.state == "STATE_QUEUED" else "STATE_SCHEDULED"
    job = schemas.JobSummary(state=state) if is_in_queue else None
    return schemas.ExperimentAnswer(experiment=shown, config=shown.config, job_summary=job)


@router.post("/experiments/{experiment_id}/activate")
async def activate(experiment_id: RowId, user: Owner, lifecycle: LifecycleDep) -> Empty:
    await lifecycle.activate(experiment_id, user)
    return Empty()


@router.post("/experiments/{experiment_id}/pause")
async def pause(experiment_id: RowId, user: Owner, lifecycle: LifecycleDep) -> Empty:
    await lifecycle.pause(experiment_id, user)
    return Empty()


@router.post("/experiments/{experiment_id}/cancel")
async def cancel(experiment_id: RowId, user: Owner, lifecycle: LifecycleDep) -> Empty:
    await lifecycle.cancel(experiment_id, user)
    return Empty()


@router.post("/experiments/{experiment_id}/kill")
async def kill(experiment_id: RowId, user: Owner, lifecycle: LifecycleDep) -> Empty:
    await lifecycle.kill(experiment_id, user)
    return Empty()


@router.post("/experiments/{experiment_id}/archive")
async def archive(experiment_id: RowId, user: Owner, lifecycle: LifecycleDep) -> Empty:
    await lifecycle.archive(experiment_id, user, archived=True, is_single=True)
    return Empty()


@router.post("/experiments/{experiment_id}/unarchive")
async def unarchive(experiment_id: RowId, user: Owner, lifecycle: LifecycleDep) -> Empty:
    await lifecycle.archive(experiment_id, user, archived=False, is_single=True)
    return Empty()


@router.delete("/experiments/{experiment_id}")
async def delete(experiment_id: RowId, user: Owner, lifecycle: LifecycleDep) -> Empty:
    await lifecycle.delete(experiment_id, user)
    return Empty()


@router.patch("/experiments/{experiment_id}")
async def patch(
    experiment_id: RowId,
    body: schemas.PatchExperimentBody,
    user: Owner,
    authorization: AuthorizationDep,
    clock: ClockDep,
    database: DatabaseDep,
    settings: SettingsDep,
) -> schemas.ExperimentAnswer:
    changes = body.changes()
    await edit.patch(database, clock, authorization, settings, experiment_id, changes, user)
    async with database.read() as session:
        row = await repository.get(session, experiment_id)
        return schemas.ExperimentAnswer(experiment=(await experiment_queries.show(session, [row]))[0])


@router.put("/experiments/{experiment_id}/labels/{label}")
async def add_label(
    experiment_id: RowId,
    label: str,
    user: Owner,
    authorization: AuthorizationDep,
    clock: ClockDep,
    database: DatabaseDep,
) -> schemas.LabelsAnswer:
    labels = await edit.relabel(database, clock, authorization, experiment_id, user, add=[label])
    return schemas.LabelsAnswer(labels=labels)


@router.delete("/experiments/{experiment_id}/labels/{label}")
async def remove_label(
    experiment_id: RowId,
    label: str,
    user: Owner,
    authorization: AuthorizationDep,
    clock: ClockDep,
    database: DatabaseDep,
) -> schemas.LabelsAnswer:
    labels = await edit.relabel(database, clock, authorization, experiment_id, user, remove=[label])
    return schemas.LabelsAnswer(labels=labels)


@router.get("/experiments/{experiment_id}/model_def")
async def model_def(
    experiment_id: RowId, _principal: Reader, database: DatabaseDep, model_defs: ModelDefsDep
) -> schemas.ModelDefAnswer:
    # No session is open while the context is read: many readers would take all connections from others.
    async with database.read() as session:
        row = await repository.get(session, experiment_id)
    return schemas.ModelDefAnswer(b64_tgz=await model_defs.as_tgz(row.context_hash))


@router.get("/experiments/{experiment_id}/searcher/best_searcher_validation_metric")
async def best_metric(experiment_id: RowId, _principal: Anyone, session: Read) -> schemas.BestMetricAnswer:
    await repository.get(session, experiment_id)
    best = (await totals_queries.totals(session, [experiment_id]))[experiment_id]
    if best.best_metric is None:
        raise NotFound(f"experiment {experiment_id} has no validation yet")
    return schemas.BestMetricAnswer(metric=best.best_metric)
