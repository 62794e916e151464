"""Finding experiments: filtered, sorted and grouped lists; which columns and which words there are."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined.errors import NotImplementedYet
from determined_master.auth import Anyone
from determined_master.columns import wire
from determined_master.dependencies import Read

router = APIRouter(prefix="/detent", tags=["finding"])
ProjectId = Annotated[int, Query(alias="projectId")]


@router.post("/experiments/search")
async def find_experiments(body: wire.SearchBody, _principal: Anyone, session: Read) -> wire.SearchAnswer:
    raise NotImplementedYet("not yet")


@router.post("/experiments/search/ids")
async def find_experiment_ids(body: wire.SearchIdsBody, _principal: Anyone, session: Read) -> wire.SearchIdsAnswer:
    raise NotImplementedYet("not yet")


@router.post("/experiments/search/groups")
async def group_experiments(body: wire.SearchGroupsBody, _principal: Anyone, session: Read) -> wire.SearchGroupsAnswer:
    raise NotImplementedYet("not yet")


@router.get("/columns")
async def list_columns(
    _principal: Anyone,
    session: Read,
    query: str = "",
    kind: wire.Kind | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 50,
    project_id: ProjectId = 0,
) -> wire.ColumnsAnswer:
    raise NotImplementedYet("not yet")


@router.get("/columns/values")
async def list_column_values(
    _principal: Anyone,
    session: Read,
    column: str,
    query: str = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> wire.ColumnValuesAnswer:
    raise NotImplementedYet("not yet")
