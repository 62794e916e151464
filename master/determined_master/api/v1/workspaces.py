"""Workspaces and projects, read-only: there is only *Uncategorized* so far."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query

from determined_master.api.dependencies import Anyone, Read
from determined_master.api.pagination import page
from determined_master.api.schemas import users as schemas
from determined_master.api.schemas.base import BoundedInt, ProjectId, RowId
from determined_master.api.sorting import sort
from determined_master.db.models import ProjectRow, WorkspaceRow
from determined_master.db.session import ReadSession
from determined_master.experiments import repository as experiment_rows
from determined_master.users import repository

P = TypeVar("P", WorkspaceRow, ProjectRow)
Usernames = Annotated[list[str], Query(alias="users")]
UserIds = Annotated[list[BoundedInt], Query(alias="userIds")]
SortBy = Annotated[str, Query(alias="sortBy")]
OrderBy = Annotated[str, Query(alias="orderBy")]
_SORT: dict[str, Callable[[WorkspaceRow | ProjectRow], Any]] = {
    "SORT_BY_ID": lambda row: row.id,
    "SORT_BY_NAME": lambda row: (row.name, row.id),
}
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
    rows = [
        row
        for row in await repository.workspaces(session)
        if name.lower() in row.name.lower()
        and (not name_case_sensitive or row.name == name_case_sensitive)
        and (archived is None or row.archived == archived)
        and not pinned  # there is none
    ]
    rows = await _of_owners(session, rows, usernames, user_ids)
    sort(rows, sort_by, order_by, _SORT)
    shown, pagination = page(rows, offset, limit)
    return schemas.WorkspacesAnswer(workspaces=[await _workspace(session, r.id) for r in shown], pagination=pagination)


@router.get("/workspaces/{workspace_id}")
async def get_workspace(workspace_id: RowId, _principal: Anyone, session: Read) -> schemas.WorkspaceAnswer:
    return schemas.WorkspaceAnswer(workspace=await _workspace(session, workspace_id))


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
    rows = [
        row
        for row in await repository.projects(session, workspace_id)
        if (not name or row.name == name) and (archived is None or row.archived == archived)
    ]
    rows = await _of_owners(session, rows, usernames, user_ids)
    sort(rows, sort_by, order_by, _SORT)
    shown, pagination = page(rows, offset, limit)
    return schemas.ProjectsAnswer(projects=[await _project(session, r.id) for r in shown], pagination=pagination)


@router.get("/projects/{project_id}")
async def get_project(project_id: ProjectId, _principal: Anyone, session: Read) -> schemas.ProjectAnswer:
    return schemas.ProjectAnswer(project=await _project(session, project_id))


async def _of_owners(session: ReadSession, rows: list[P], usernames: list[str], user_ids: list[int]) -> list[P]:
    """Keeps those that belong to one of the given users; keeps all if no user is given."""
    if not usernames and not user_ids:
        return rows
    owners = {*user_ids, *(user.id for user in await repository.all_users(session) if user.username in usernames)}
    return [row for row in rows if row.user_id in owners]


async def _workspace(session: ReadSession, workspace_id: int) -> schemas.Workspace:
    row = await repository.get_workspace(session, workspace_id)
    owner = await repository.get(session, row.user_id)
    projects = await repository.projects(session, workspace_id)
    experiments = [await experiment_rows.count_in_project(session, p.id) for p in projects]
    return schemas.workspace(row, owner.username, sum(total for total, _ in experiments), len(projects))


async def _project(session: ReadSession, project_id: ProjectId) -> schemas.Project:
    row = await repository.get_project(session, project_id)
    owner = await repository.get(session, row.user_id)
    home = await repository.get_workspace(session, row.workspace_id)
    total, active = await experiment_rows.count_in_project(session, project_id)
    return schemas.project(row, owner.username, home.name, total, active)
