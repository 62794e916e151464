"""Actions on many experiments, selected by ids or by a filter."""

from functools import partial

from fastapi import APIRouter

from determined.states import ExperimentState
from determined_master.api.dependencies import AuthorizationDep, ClockDep, DatabaseDep, LifecycleDep, Owner
from determined_master.api.json_body import JsonRoute
from determined_master.api.schemas import experiment_list as schemas
from determined_master.api.schemas.base import ProjectId
from determined_master.api.schemas.enums import states
from determined_master.db.session import WriteSession
from determined_master.experiment_index import bulk_selection
from determined_master.experiment_index.bulk_selection import IdSelection, Verb
from determined_master.experiments import repository
from determined_master.experiments.commands import edit
from determined_master.experiments.repository import Selection

router = APIRouter(route_class=JsonRoute, tags=["many experiments"])
_OF_PROJECT = "/api/v1/projects/{project_id}/experiments"


@router.post(f"{_OF_PROJECT}/activate")
async def activate_experiments(
    project_id: ProjectId, body: schemas.BulkBody, user: Owner, database: DatabaseDep, lifecycle: LifecycleDep
) -> schemas.BulkAnswer:
    return await _each(database, project_id, body, lambda i, s: lifecycle.activate(i, user, s))


@router.post(f"{_OF_PROJECT}/pause")
async def pause_experiments(
    project_id: ProjectId, body: schemas.BulkBody, user: Owner, database: DatabaseDep, lifecycle: LifecycleDep
) -> schemas.BulkAnswer:
    return await _each(database, project_id, body, lambda i, s: lifecycle.pause(i, user, s))


@router.post(f"{_OF_PROJECT}/cancel")
async def cancel_experiments(
    project_id: ProjectId, body: schemas.BulkBody, user: Owner, database: DatabaseDep, lifecycle: LifecycleDep
) -> schemas.BulkAnswer:
    return await _each(database, project_id, body, lambda i, s: lifecycle.cancel(i, user, s))


@router.post(f"{_OF_PROJECT}/kill")
async def kill_experiments(
    project_id: ProjectId, body: schemas.BulkBody, user: Owner, database: DatabaseDep, lifecycle: LifecycleDep
) -> schemas.BulkAnswer:
    return await _each(database, project_id, body, lambda i, s: lifecycle.kill(i, user, s))


@router.post(f"{_OF_PROJECT}/archive")
async def archive_experiments(
    project_id: ProjectId, body: schemas.BulkBody, user: Owner, database: DatabaseDep, lifecycle: LifecycleDep
) -> schemas.BulkAnswer:
    return await _each(database, project_id, body, lambda i, s: lifecycle.archive(i, user, s, archived=True))


@router.post(f"{_OF_PROJECT}/unarchive")
async def unarchive_experiments(
    project_id: ProjectId, body: schemas.BulkBody, user: Owner, database: DatabaseDep, lifecycle: LifecycleDep
) -> schemas.BulkAnswer:
    return await _each(database, project_id, body, lambda i, s: lifecycle.archive(i, user, s, archived=False))


@router.delete(f"{_OF_PROJECT}/delete")
async def delete_experiments(
    project_id: ProjectId, body: schemas.BulkBody, user: Owner, database: DatabaseDep, lifecycle: LifecycleDep
) -> schemas.BulkAnswer:
    return await _each(database, project_id, body, lambda i, s: lifecycle.delete(i, user, s))


@router.post(f"{_OF_PROJECT}/move")
async def move_experiments(
    project_id: ProjectId, body: schemas.BulkMoveBody, user: Owner, database: DatabaseDep, lifecycle: LifecycleDep
) -> schemas.BulkAnswer:
    await lifecycle.check_home(body.destination_project_id)
    return await _each(
        database, project_id, body, lambda i, s: lifecycle.rehome(i, user, body.destination_project_id, s)
    )


@router.post("/detent/experiments/labels")
async def label_experiments(
    body: schemas.BulkLabelsBody, user: Owner, authorization: AuthorizationDep, clock: ClockDep, database: DatabaseDep
) -> schemas.BulkAnswer:
    add, remove = bulk_selection.labels(body.add), bulk_selection.labels(body.remove)
    chosen = IdSelection(body.experiment_ids, expected_count=body.expected_count)

    async def relabel(experiment_id: int, _session: WriteSession | None) -> None:
        await edit.relabel(database, clock, authorization, experiment_id, user, add=add, remove=remove)

    return _answer(await chosen.each(database, relabel))


async def _each(database: DatabaseDep, project_id: int, body: schemas.BulkBody, verb: Verb) -> schemas.BulkAnswer:
    project = bulk_selection.project_of(project_id, body.project_id)
    listed = None if body.filters is None else partial(repository.ids, wanted=_selection(body.filters, project))
    chosen = IdSelection(body.experiment_ids, project_id=project, expected_count=body.expected_count, listed=listed)
    return _answer(await chosen.each(database, verb))


def _selection(filters: schemas.BulkFilters, project: int) -> Selection:
    """Returns the experiments of the path's project that a list with this filter shows."""
    other = max(0, filters.project_id or 0)
    return Selection(
        archived=filters.archived,
        name=filters.name or "",
        description=filters.description or "",
        states=states(filters.states or (), ExperimentState),
        project_id=bulk_selection.project_of(project, other) if project else other,
        owners=filters.user_ids or None,
        labels=filters.labels or (),
        excluded=filters.excluded_experiment_ids or (),
    )


def _answer(results: list[bulk_selection.Result]) -> schemas.BulkAnswer:
    return schemas.BulkAnswer(results=[schemas.BulkResult(id=r.id, error=r.error) for r in results])
