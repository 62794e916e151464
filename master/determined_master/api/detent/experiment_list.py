"""Lists of experiments: filtered, sorted and grouped; available columns and values."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined_master.api.dependencies import Anyone, ClockDep, Read
from determined_master.api.json_body import JsonRoute
from determined_master.api.queries.experiment_status import run_times
from determined_master.api.schemas import experiment_list as schemas
from determined_master.api.schemas.experiment_status import RunTimes
from determined_master.experiment_index import column_catalog
from determined_master.experiment_index.column_names import Kind
from determined_master.experiment_index.list_query import Question, Search
from determined_master.states.display_state import RUNNING
from determined_master.trials import health_queries
from determined_master.trials import repository as trial_rows

router = APIRouter(route_class=JsonRoute, prefix="/detent", tags=["finding"])

TIMES = frozenset({"waited", "ran"})
"""Columns that are computed for the rows of one page. Lists cannot be sorted or filtered by them."""


@router.post("/experiments/search")
async def find_experiments(
    body: schemas.SearchBody, _principal: Anyone, session: Read, clock: ClockDep
) -> schemas.SearchAnswer:
    now = clock.now()
    search = Search(session, now, Question(body.project_id, body.filter, body.sort, body.show_archived))
    columns = [each for each in body.columns if each not in TIMES]
    page = await search.page(columns, body.offset, body.limit, body.ids)
    active = [shown.experiment.id for shown, _ in page.rows if shown.state == RUNNING]
    notes = await health_queries.notes(session, active, now)
    times: dict[int, RunTimes] = {}
    if TIMES & set(body.columns):
        ids = [shown.experiment.id for shown, _ in page.rows]
        attempts = await trial_rows.attempt_times(session, ids)
        times = {i: run_times(attempts.get(i, []), now) for i in ids}
    return schemas.SearchAnswer(
        total=page.total,
        offset=body.offset,
        experiments=[
            schemas.row(shown, cells, now, times.get(shown.experiment.id), notes.get(shown.experiment.id))
            for shown, cells in page.rows
        ],
        unknown_columns=page.unknown,
    )


@router.post("/experiments/search/ids")
async def find_experiment_ids(
    body: schemas.SearchIdsBody, _principal: Anyone, session: Read, clock: ClockDep
) -> schemas.SearchIdsAnswer:
    question = Question(body.project_id, body.filter, body.sort, body.show_archived)
    ids = await Search(session, clock.now(), question).ids()
    return schemas.SearchIdsAnswer(ids=ids, total=len(ids))


@router.post("/experiments/search/groups")
async def group_experiments(
    body: schemas.SearchGroupsBody, _principal: Anyone, session: Read, clock: ClockDep
) -> schemas.SearchGroupsAnswer:
    question = Question(body.project_id, body.filter, None, body.show_archived)
    groups = await Search(session, clock.now(), question).groups(body.by)
    return schemas.SearchGroupsAnswer(groups=[schemas.Group(value=value, count=count) for value, count in groups])


@router.get("/columns")
async def list_columns(
    _principal: Anyone,
    session: Read,
    query: str = "",
    kind: Kind | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 50,
    project_id: Annotated[int, Query(alias="projectId")] = 0,
) -> schemas.ColumnsAnswer:
    found, total = await column_catalog.page(session, query, kind, limit, project_id)
    return schemas.ColumnsAnswer(columns=[schemas.column(one) for one in found], total=total)


@router.get("/columns/values")
async def list_column_values(
    _principal: Anyone,
    session: Read,
    clock: ClockDep,
    column: str,
    query: str = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> schemas.ColumnValuesAnswer:
    return schemas.ColumnValuesAnswer(values=await column_catalog.words(session, column, query, limit, clock.now()))
