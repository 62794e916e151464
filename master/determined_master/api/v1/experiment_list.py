"""Search for experiments in the format of Determined."""

from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Response

from determined_master.api.dependencies import Anyone, ClockDep, Read
from determined_master.api.json_body import JsonRoute
from determined_master.api.pagination import Window
from determined_master.api.queries.experiment_rows import show
from determined_master.api.schemas import experiment_list as schemas
from determined_master.api.schemas.base import ProjectId
from determined_master.api.sorting import refuse_given
from determined_master.experiment_index import column_catalog, column_repository, repository
from determined_master.experiment_index.list_query import Question, Search, project_of
from determined_master.users import repository as users

router = APIRouter(route_class=JsonRoute, prefix="/api/v1", tags=["finding"])
LARGEST_PAGE = 500


@router.post("/experiments-search")
async def search_experiments(
    body: schemas.ExperimentsSearchBody, _principal: Anyone, session: Read, clock: ClockDep
) -> schemas.ExperimentsSearchAnswer:
    now = clock.now()
    search = Search(session, now, Question(any_project(body.project_id), body.filter, body.sort))
    total = await search.total()
    window = Window.of(body.offset, body.limit, total)
    limit = LARGEST_PAGE if window.limit is None else min(window.limit, LARGEST_PAGE)
    found = await show(session, await search.ids(offset=window.offset, limit=limit), now)
    return schemas.ExperimentsSearchAnswer(
        experiments=[schemas.FoundExperiment(experiment=one, best_trial=best) for one, best in found],
        pagination=window.pagination(total, len(found), body.limit),
    )


@router.get("/projects/{project_id}/columns", response_model=schemas.ProjectColumnsAnswer)
async def get_project_columns(
    project_id: ProjectId,
    _principal: Anyone,
    session: Read,
    table_type: Annotated[str, Query(alias="tableType")] = "",
) -> Response:
    """Returns columns except those of the configuration, which the older page does not know."""
    if table_type not in ("", "TABLE_TYPE_UNSPECIFIED", "TABLE_TYPE_EXPERIMENT"):
        refuse_given(tableType=table_type)
    project = await _project(session, project_id)
    columns = [schemas.project_column(*one) for one in await column_catalog.every(session, project)]
    return Response(msgspec.json.encode({"columns": columns}), media_type="application/json")


@router.get("/projects/{project_id}/experiments/metric-ranges")
async def get_project_metric_ranges(
    project_id: ProjectId, _principal: Anyone, session: Read
) -> schemas.MetricRangesAnswer:
    project = await _project(session, project_id)
    found = await column_repository.ranges(session, project)
    return schemas.MetricRangesAnswer(
        ranges=[schemas.MetricsRange(metrics_name=r.name, min=r.minimum, max=r.maximum) for r in found]
    )


@router.get("/experiment/labels")
async def get_experiment_labels(
    _principal: Anyone, session: Read, project_id: Annotated[int, Query(alias="projectId")] = 0
) -> schemas.ExperimentLabelsAnswer:
    return schemas.ExperimentLabelsAnswer(
        labels=list(await repository.labels(session, project_of(any_project(project_id))))
    )


async def _project(session: Read, project_id: int) -> int:
    """Returns the project's id, 0 for any. Raises NotFound for one that does not exist."""
    project = project_of(any_project(project_id))
    if project:
        await users.get_project(session, project)
    return project


def any_project(project_id: int | None) -> int:
    """Clients of the older API send -1 as well as 0 for any project."""
    return 0 if project_id == -1 else project_id or 0
