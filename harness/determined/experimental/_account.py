"""Users, workspaces and projects of the SDK."""

from collections.abc import Iterator, Mapping
from typing import Any

from determined.client import users
from determined.client.paging import items
from determined.client.session import Session
from determined.client.sign_in import hashed

WORKSPACES = "/api/v1/workspaces"


class User:
    """A user of the cluster.

    Args:
        session: the connection to the master.
        data: what the API shows.

    Attributes:
        user_id: its id.
        username: name to sign in with.
        display_name: name that is shown, or an empty text.
        admin: True for admins.
        active: False after the user was deactivated.

    Example:
        >>> client.whoami().username                     # doctest: +SKIP
        'ann'
    """

    def __init__(self, session: Session, data: Mapping[str, Any]) -> None:
        self._session = session
        self._set(data)

    def _set(self, data: Mapping[str, Any]) -> None:
        self.user_id = int(data.get("id") or 0)
        self.username = str(data["username"])
        self.display_name = str(data.get("displayName") or "")
        self.admin = bool(data["admin"])
        self.active = bool(data["active"])

    def __repr__(self) -> str:
        return f"User(username={self.username!r}, admin={self.admin})"

    def rename(self, new_username: str) -> None:
        """Changes the user name for signing in. Admins only.

        Args:
            new_username: the new name.
        """
        self._change(username=new_username)

    def change_display_name(self, display_name: str) -> None:
        """Changes the display name. Only admins may change that of another user.

        Args:
            display_name: the new name.
        """
        self._change(displayName=display_name)

    def change_password(self, new_password: str) -> None:
        """Changes the password. Only admins may change that of another user.

        Args:
            new_password: the new password; it is sent hashed.
        """
        users.set_password(self._session, self.user_id, hashed(new_password))

    def activate(self) -> None:
        """Activates the user, who can sign in again. Admins only."""
        self._change(active=True)

    def deactivate(self) -> None:
        """Deactivates the user, who can no longer sign in. Admins only."""
        self._change(active=False)

    def _change(self, **values: object) -> None:
        self._set(users.change(self._session, self.user_id, values))


class Project:
    """A project: a part of a workspace that holds experiments.

    Args:
        data: what the API shows.

    Attributes:
        id: its id.
        name: its name.
        description: its description; empty if it has none.
        workspace_id: id of its workspace.
        archived: True if lists hide it.

    Example:
        >>> [project.name for project in client.get_workspace("Uncategorized").list_projects()]   # doctest: +SKIP
        ['Uncategorized']
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.id = int(data["id"])
        self.name = str(data["name"])
        self.description = str(data.get("description") or "")
        self.workspace_id = int(data["workspaceId"])
        self.archived = bool(data["archived"])

    def __repr__(self) -> str:
        return f"Project(id={self.id}, name={self.name!r})"


class Workspace:
    """A workspace: a group of projects.

    Args:
        session: the connection to the master.
        data: what the API shows.

    Attributes:
        id: its id.
        name: its name.
        archived: True if lists hide it.

    Example:
        >>> client.get_workspace("Uncategorized").id      # doctest: +SKIP
        1
    """

    def __init__(self, session: Session, data: Mapping[str, Any]) -> None:
        self._session = session
        self.id = int(data["id"])
        self.name = str(data["name"])
        self.archived = bool(data["archived"])

    def __repr__(self) -> str:
        return f"Workspace(id={self.id}, name={self.name!r})"

    def list_projects(self) -> list[Project]:
        """Returns the projects of the workspace."""
        return [Project(each) for each in items(self._session, f"{WORKSPACES}/{self.id}/projects", "projects")]


def workspaces(session: Session, name: str | None = None) -> Iterator[Workspace]:
    """Yields the workspaces, or the one with exactly this name."""
    for each in items(session, WORKSPACES, "workspaces", {"nameCaseSensitive": name}):
        yield Workspace(session, each)
