"""Finding experiments: filtered, sorted and grouped lists; which columns and which words there are."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined_master.columns import catalogue, wire
from determined_master.columns.names import Kind
from determined_master.columns.search import Question, Search
from determined_master.dependencies import Anyone, Read, TheMaster

router = APIRouter(prefix="/detent", tags=["finding"])


@router.post("/experiments/search")
async def find_experiments(
    body: wire.SearchBody, _principal: Anyone, session: Read, master: TheMaster
) -> wire.SearchAnswer:
    now = master.clock.now()
    search = Search(session, now, Question(body.project_id, body.filter, body.sort, body.show_archived))
    found = await search.page(body.columns, body.offset, body.limit)
    return wire.SearchAnswer(
        total=found.total,
        offset=body.offset,
        experiments=[wire.row(shown, cells, now) for shown, cells in found.rows],
        unknown_columns=found.unknown,
    )


@router.post("/experiments/search/ids")
async def find_experiment_ids(
    body: wire.SearchIdsBody, _principal: Anyone, session: Read, master: TheMaster
) -> wire.SearchIdsAnswer:
    question = Question(body.project_id, body.filter, body.sort, body.show_archived)
    ids = await Search(session, master.clock.now(), question).ids()
    return wire.SearchIdsAnswer(ids=ids, total=len(ids))


@router.post("/experiments/search/groups")
async def group_experiments(
    body: wire.SearchGroupsBody, _principal: Anyone, session: Read, master: TheMaster
) -> wire.SearchGroupsAnswer:
    question = Question(body.project_id, body.filter, None, body.show_archived)
    groups = await Search(session, master.clock.now(), question).groups(body.by)
    return wire.SearchGroupsAnswer(groups=[wire.Group(value=value, count=count) for value, count in groups])


@router.get("/columns")
async def list_columns(
    _principal: Anyone,
    session: Read,
    query: str = "",
    kind: Kind | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 50,
    project_id: Annotated[int, Query(alias="projectId")] = 0,
) -> wire.ColumnsAnswer:
    found, total = await catalogue.page(session, query, kind, limit, project_id)
    return wire.ColumnsAnswer(columns=[wire.column(one) for one in found], total=total)


@router.get("/columns/values")
async def list_column_values(
    _principal: Anyone,
    session: Read,
    master: TheMaster,
    column: str,
    query: str = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> wire.ColumnValuesAnswer:
    return wire.ColumnValuesAnswer(values=await catalogue.words(session, column, query, limit, master.clock.now()))
