"""Workspaces and projects, read-only: there is only *Uncategorized* so far."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query

from determined_master.api.dependencies import Anyone, Read
from determined_master.api.pagination import Window
from determined_master.api.schemas import users as schemas
from determined_master.api.schemas.base import BoundedInt, Pagination, ProjectId, RowId
from determined_master.api.schemas.enums import is_descending
from determined_master.api.sorting import column_of
from determined_master.db.models import ProjectRow, WorkspaceRow
from determined_master.db.session import ReadSession
from determined_master.experiments import repository as experiment_rows
from determined_master.users import list_queries, repository
from determined_master.users.list_queries import Owned, OwnedFilter, OwnedOrder

Usernames = Annotated[list[str], Query(alias="users")]
UserIds = Annotated[list[BoundedInt], Query(alias="userIds")]
SortBy = Annotated[str, Query(alias="sortBy")]
OrderBy = Annotated[str, Query(alias="orderBy")]
_ORDERS: dict[str, OwnedOrder] = {"SORT_BY_ID": "id", "SORT_BY_NAME": "name"}
router = APIRouter(prefix="/api/v1", tags=["workspaces"])


@router.get("/workspaces")
async def list_workspaces(
    _principal: Anyone,
    session: Read,
    name: str = "",
    name_case_sensitive: Annotated[str, Query(alias="nameCaseSensitive")] = "",
    archived: bool | None = None,
    pinned: bool | None = None,
    usernames: Usernames = [],  # noqa: B006
    user_ids: UserIds = [],  # noqa: B006
    sort_by: SortBy = "",
    order_by: OrderBy = "",
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> schemas.WorkspacesAnswer:
    wanted = OwnedFilter(name, name_case_sensitive, archived, pinned, usernames, user_ids)
    rows, pagination = await _page(session, WorkspaceRow, wanted, sort_by, order_by, offset, limit)
    return schemas.WorkspacesAnswer(workspaces=await _workspaces(session, rows), pagination=pagination)


@router.get("/workspaces/{workspace_id}")
async def get_workspace(workspace_id: RowId, _principal: Anyone, session: Read) -> schemas.WorkspaceAnswer:
    row = await repository.get_workspace(session, workspace_id)
    return schemas.WorkspaceAnswer(workspace=(await _workspaces(session, [row]))[0])


@router.get("/workspaces/{workspace_id}/projects")
async def list_projects(
    workspace_id: RowId,
    _principal: Anyone,
    session: Read,
    name: str = "",
    archived: bool | None = None,
    usernames: Usernames = [],  # noqa: B006
    user_ids: UserIds = [],  # noqa: B006
    sort_by: SortBy = "",
    order_by: OrderBy = "",
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> schemas.ProjectsAnswer:
    await repository.get_workspace(session, workspace_id)
    wanted = OwnedFilter(
        name=name, archived=archived, usernames=usernames, user_ids=user_ids, workspace_id=workspace_id
    )
    rows, pagination = await _page(session, ProjectRow, wanted, sort_by, order_by, offset, limit)
    return schemas.ProjectsAnswer(projects=await _projects(session, rows), pagination=pagination)


@router.get("/projects/{project_id}")
async def get_project(project_id: ProjectId, _principal: Anyone, session: Read) -> schemas.ProjectAnswer:
    row = await repository.get_project(session, project_id)
    return schemas.ProjectAnswer(project=(await _projects(session, [row]))[0])


async def _page(
    session: ReadSession,
    model: type[Owned],
    wanted: OwnedFilter,
    sort_by: str,
    order_by: str,
    offset: int,
    limit: int,
) -> tuple[Sequence[Owned], Pagination]:
    by: OwnedOrder = column_of(sort_by, _ORDERS, "id")
    total = await list_queries.count_owned(session, model, wanted)
    window = Window.of(offset, limit, total)
    descending = is_descending(order_by)
    rows = await list_queries.page_of_owned(
        session, model, wanted, by=by, descending=descending, offset=window.offset, limit=window.limit
    )
    return rows, window.pagination(total, len(rows), limit)


async def _workspaces(session: ReadSession, rows: Sequence[WorkspaceRow]) -> list[schemas.Workspace]:
    ids = [row.id for row in rows]
    owners = await list_queries.usernames(session, {row.user_id for row in rows})
    projects = await list_queries.count_projects(session, ids)
    experiments = await experiment_rows.count_in_workspaces(session, ids)
    return [
        schemas.workspace(row, owners[row.user_id], experiments.get(row.id, 0), projects.get(row.id, 0)) for row in rows
    ]


async def _projects(session: ReadSession, rows: Sequence[ProjectRow]) -> list[schemas.Project]:
    """Returns projects of one workspace."""
    owners = await list_queries.usernames(session, {row.user_id for row in rows})
    experiments = await experiment_rows.count_in_projects(session, [row.id for row in rows])
    homes = {i: await repository.get_workspace(session, i) for i in {row.workspace_id for row in rows}}
    return [
        schemas.project(row, owners[row.user_id], homes[row.workspace_id].name, *experiments.get(row.id, (0, 0)))
        for row in rows
    ]
