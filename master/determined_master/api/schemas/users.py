"""Wire models of users, workspaces and projects."""

from typing import Annotated, Any

from pydantic import Field

from determined_master.api.schemas.base import Name, Pagination, Time, Wire
from determined_master.db.models import ProjectRow, UserRow, WorkspaceRow

# The kernel reads the highest number as "unchanged".
SystemId = Annotated[int, Field(strict=True, ge=0, lt=2**32 - 1)]
Password = Annotated[str, Field(max_length=1024)]
MAX_SETTINGS = 1000
"""Settings of a user, and in one request."""
SettingText = Annotated[str, Field(max_length=64 * 1024)]


class AgentUserGroup(Wire):
    """User and group on the agents' machines."""

    agent_uid: SystemId | None = None
    agent_user: Name | None = None
    agent_gid: SystemId | None = None
    agent_group: Name | None = None


class User(Wire):
    id: int
    username: str
    admin: bool
    active: bool
    agent_user_group: AgentUserGroup | None = None
    display_name: str = ""
    modified_at: Time | None = None
    last_auth_at: Time | None = None
    remote: bool = False


class UserAnswer(Wire):
    user: User


class UsersAnswer(Wire):
    users: list[User]
    pagination: Pagination


class LoginBody(Wire):
    username: Name
    password: Password = ""
    is_hashed: bool = False


class LoginAnswer(Wire):
    token: str
    user: User


class NewUser(Wire):
    username: Name
    admin: bool = False
    active: bool = True
    display_name: Name | None = None
    agent_user_group: AgentUserGroup | None = None


class PostUserBody(Wire):
    user: NewUser
    password: Password | None = None
    is_hashed: bool = False


class PatchUserBody(Wire):
    active: bool | None = None
    admin: bool | None = None
    agent_user_group: AgentUserGroup | None = None
    display_name: Name | None = None
    password: Password | None = None
    is_hashed: bool = False
    remote: bool | None = None
    username: Name | None = None


class UserWebSetting(Wire):
    key: SettingText
    storage_path: SettingText = ""
    value: SettingText = ""


class UserSettings(Wire):
    settings: Annotated[list[UserWebSetting], Field(max_length=MAX_SETTINGS)]


class Workspace(Wire):
    id: int
    name: str
    archived: bool = False
    error_message: str = ""
    immutable: bool = False
    num_experiments: int = 0
    num_projects: int = 0
    pinned: bool = False
    state: str = "WORKSPACE_STATE_UNSPECIFIED"
    user_id: int
    username: str
    agent_user_group: dict[str, Any] | None = None
    auto_created_namespace: str | None = None
    checkpoint_storage_config: dict[str, Any] | None = None
    default_aux_pool: str = ""
    default_compute_pool: str = ""
    pinned_at: Time | None = None


class WorkspaceAnswer(Wire):
    workspace: Workspace


class WorkspacesAnswer(Wire):
    workspaces: list[Workspace]
    pagination: Pagination


class Project(Wire):
    id: int
    name: str
    archived: bool = False
    error_message: str = ""
    immutable: bool = False
    key: str = ""
    notes: list[dict[str, Any]] = []
    num_active_experiments: int = 0
    num_experiments: int = 0
    num_runs: int = 0
    state: str = "WORKSPACE_STATE_UNSPECIFIED"
    user_id: int
    username: str
    workspace_id: int
    description: str = ""
    last_experiment_started_at: Time | None = None
    workspace_name: str = ""


class ProjectAnswer(Wire):
    project: Project


class ProjectsAnswer(Wire):
    projects: list[Project]
    pagination: Pagination


def user(row: UserRow) -> User:
    return User(
        id=row.id,
        username=row.username,
        admin=row.admin,
        active=row.active,
        agent_user_group=AgentUserGroup.model_validate(row.agent_user_group) if row.agent_user_group else None,
        display_name=row.display_name,
        modified_at=row.modified_at,
        last_auth_at=row.last_auth_at,
        remote=row.remote,
    )


def workspace(row: WorkspaceRow, username: str, experiments: int, projects: int) -> Workspace:
    return Workspace(
        id=row.id,
        name=row.name,
        archived=row.archived,
        immutable=row.immutable,
        user_id=row.user_id,
        username=username,
        num_experiments=experiments,
        num_projects=projects,
    )


def project(row: ProjectRow, username: str, workspace_name: str, experiments: int, active: int) -> Project:
    return Project(
        id=row.id,
        name=row.name,
        archived=row.archived,
        immutable=row.immutable,
        key=row.key,
        description=row.description,
        user_id=row.user_id,
        username=username,
        workspace_id=row.workspace_id,
        workspace_name=workspace_name,
        num_experiments=experiments,
        num_runs=experiments,
        num_active_experiments=active,
    )
