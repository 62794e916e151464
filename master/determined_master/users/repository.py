"""SQL for users, sessions, workspaces and projects."""

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import delete, or_, select, update

from determined.errors import NotFound
from determined_master.db.models import ProjectRow, SessionRow, SignInLinkRow, UserRow, UserSettingRow, WorkspaceRow
from determined_master.db.models.base import table_of
from determined_master.db.session import ReadSession, WriteSession
from determined_master.db.statements.row_changes import insert_rows
from determined_master.db.statements.text_search import equals_lowered


async def get(session: ReadSession, user_id: int) -> UserRow:
    row = await session.get(UserRow, user_id)
    if row is None:
        raise NotFound(f"user '{user_id}' not found")
    return row


async def find_by_name(session: ReadSession, username: str) -> UserRow | None:
    """Finds a user, ignoring case. If earlier versions made names that differ only by case, the exact one wins."""
    query = select(UserRow).where(equals_lowered(UserRow.username, username.lower()))
    return (await session.scalars(query.order_by((UserRow.username == username).desc(), UserRow.id))).first()


async def find_namesake(session: ReadSession, display_name: str, but: int | None) -> UserRow | None:
    """Returns a user other than ``but`` who is known by this name: as display name or to sign in."""
    name = display_name.strip().lower()
    query = select(UserRow).where(
        or_(equals_lowered(UserRow.display_name, name), equals_lowered(UserRow.username, name))
    )
    if but is not None:
        query = query.where(UserRow.id != but)
    return (await session.scalars(query.order_by(UserRow.id))).first()


async def all_users(session: ReadSession) -> Sequence[UserRow]:
    return (await session.scalars(select(UserRow).order_by(UserRow.id))).all()


async def add(session: WriteSession, **values: object) -> UserRow:
    row = UserRow(**values)
    session.add(row)
    await session.flush()
    return row


async def change(session: WriteSession, user_id: int, **values: object) -> None:
    await session.execute(update(UserRow).where(UserRow.id == user_id).values(**values))


async def open_session(
    session: WriteSession, user_id: int, token_hash: str, now: datetime, expires_at: datetime
) -> SessionRow:
    row = SessionRow(user_id=user_id, token_hash=token_hash, created_at=now, expires_at=expires_at)
    session.add(row)
    await session.flush()
    return row


async def close_session(session: WriteSession, session_id: int) -> None:
    await session.execute(delete(SessionRow).where(SessionRow.id == session_id))


async def close_sessions_of(session: WriteSession, user_id: int, *, but: int | None = None) -> None:
    """Deletes sessions and sign-in links of the user."""
    await session.execute(delete(SignInLinkRow).where(SignInLinkRow.user_id == user_id))
    query = delete(SessionRow).where(SessionRow.user_id == user_id)
    if but is not None:
        query = query.where(SessionRow.id != but)
    await session.execute(query)


async def add_link(session: WriteSession, user_id: int, token_hash: str, now: datetime, expires_at: datetime) -> None:
    session.add(SignInLinkRow(user_id=user_id, token_hash=token_hash, created_at=now, expires_at=expires_at))
    await session.flush()


async def use_link(session: WriteSession, token_hash: str, now: datetime) -> int | None:
    """Deletes the link and returns its user, so that only one of two concurrent requests succeeds."""
    query = (
        delete(SignInLinkRow)
        .where(SignInLinkRow.token_hash == token_hash, SignInLinkRow.expires_at > now)
        .returning(SignInLinkRow.user_id)
    )
    return (await session.execute(query)).scalar_one_or_none()


async def drop_links_before(session: WriteSession, now: datetime) -> None:
    await session.execute(delete(SignInLinkRow).where(SignInLinkRow.expires_at <= now))


async def get_workspace(session: ReadSession, workspace_id: int) -> WorkspaceRow:
    row = await session.get(WorkspaceRow, workspace_id)
    if row is None:
        raise NotFound(f"workspace '{workspace_id}' not found")
    return row


async def get_project(session: ReadSession, project_id: int) -> ProjectRow:
    row = await session.get(ProjectRow, project_id)
    if row is None:
        raise NotFound(f"project '{project_id}' not found")
    return row


async def has_workspace(session: ReadSession, name: str) -> bool:
    return (
        await session.scalars(select(WorkspaceRow.id).where(WorkspaceRow.name == name).limit(1))
    ).first() is not None


async def find_project(session: ReadSession, workspace: str, project: str) -> int | None:
    """Returns the id of a project by the names that a configuration gives; None if there is none."""
    query = (
        select(ProjectRow.id)
        .join(WorkspaceRow, WorkspaceRow.id == ProjectRow.workspace_id)
        .where(WorkspaceRow.name == workspace, ProjectRow.name == project)
    )
    return (await session.scalars(query.order_by(ProjectRow.id).limit(1))).first()


async def add_first_places(session: WriteSession, user_id: int) -> None:
    """Adds the default workspace and project."""
    workspace = WorkspaceRow(name="Uncategorized", user_id=user_id, immutable=True)
    session.add(workspace)
    await session.flush()
    # Without ids of our own: the sequences of PostgreSQL would not know of them.
    session.add(ProjectRow(workspace_id=workspace.id, name="Uncategorized", user_id=user_id, immutable=True))
    await session.flush()


async def settings(session: ReadSession, user_id: int) -> Sequence[UserSettingRow]:
    query = select(UserSettingRow).where(UserSettingRow.user_id == user_id)
    query = query.order_by(UserSettingRow.storage_path, UserSettingRow.key, UserSettingRow.digest)
    return (await session.scalars(query)).all()


class Setting(NamedTuple):
    """A setting of a user in the web page."""

    storage_path: str
    key: str
    value: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{len(self.storage_path)} {self.storage_path} {self.key}".encode()).hexdigest()


async def setting_digests(session: ReadSession, user_id: int) -> set[str]:
    return set(await session.scalars(select(UserSettingRow.digest).where(UserSettingRow.user_id == user_id)))


async def put_settings(session: WriteSession, user_id: int, wanted: Mapping[str, Setting]) -> None:
    """Stores settings, by their digests, in two statements."""
    of_them = (UserSettingRow.user_id == user_id, UserSettingRow.digest.in_(wanted))
    await session.execute(delete(UserSettingRow).where(*of_them))
    rows = [{"user_id": user_id, "digest": digest, **each._asdict()} for digest, each in wanted.items()]
    await insert_rows(session, table_of(UserSettingRow), rows)


async def drop_settings(session: WriteSession, user_id: int) -> None:
    await session.execute(delete(UserSettingRow).where(UserSettingRow.user_id == user_id))
