"""Workspaces and projects, readable: *Uncategorized* is all that there is so far."""

from typing import Annotated

from fastapi import APIRouter, Query

from determined_master.api.dependencies import Anyone, Read
from determined_master.api.pagination import page
from determined_master.api.schemas import users as schemas
from determined_master.api.schemas.base import BoundedInt, ProjectId, RowId
from determined_master.db.session import ReadSession
from determined_master.experiments import repository as experiment_rows
from determined_master.users import repository

router = APIRouter(prefix="/api/v1", tags=["workspaces"])


@router.get("/workspaces")
async def list_workspaces(
    _principal: Anyone,
    session: Read,
    name: str = "",
    name_case_sensitive: Annotated[str, Query(alias="nameCaseSensitive")] = "",
    archived: bool | None = None,
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> schemas.WorkspacesAnswer:
    rows = [
        row
        for row in await repository.workspaces(session)
        if name.lower() in row.name.lower()
        and (not name_case_sensitive or row.name == name_case_sensitive)
        and (archived is None or row.archived == archived)
    ]
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
    offset: BoundedInt = 0,
    limit: BoundedInt = 0,
) -> schemas.ProjectsAnswer:
    await repository.get_workspace(session, workspace_id)
    rows = [r for r in await repository.projects(session, workspace_id) if not name or r.name == name]
    shown, pagination = page(rows, offset, limit)
    return schemas.ProjectsAnswer(projects=[await _project(session, r.id) for r in shown], pagination=pagination)


@router.get("/projects/{project_id}")
async def get_project(project_id: ProjectId, _principal: Anyone, session: Read) -> schemas.ProjectAnswer:
    return schemas.ProjectAnswer(project=await _project(session, project_id))


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
