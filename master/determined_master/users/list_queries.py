"""SQL for lists of users, workspaces and projects, page by page."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from sqlalchemy import BigInteger, ColumnElement, SQLColumnExpression, false, func, or_, select, type_coerce

from determined_master.db.models import ProjectRow, UserRow, WorkspaceRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.batches import batched
from determined_master.db.statements.text_search import contains_lowered

MAX_IDS_A_STATEMENT = 10_000
UserOrder = Literal[
    "id", "display_name", "username", "name", "admin", "active", "remote", "modified_at", "last_auth_at"
]
"""The columns by which pages of users can be sorted."""
OwnedOrder = Literal["id", "name"]
"""The columns by which pages of workspaces and projects can be sorted."""
Owned = TypeVar("Owned", WorkspaceRow, ProjectRow)
Listed = TypeVar("Listed", UserRow, WorkspaceRow, ProjectRow)

_NEVER = 2**62
"""After every time: who has never signed in comes last."""
_USER_ORDERS: Mapping[UserOrder, SQLColumnExpression[Any]] = {
    "id": UserRow.id,
    "display_name": UserRow.display_name,
    "username": UserRow.username,
    "name": func.coalesce(func.nullif(UserRow.display_name, ""), UserRow.username),
    "admin": UserRow.admin,
    "active": UserRow.active,
    "remote": UserRow.remote,
    "modified_at": UserRow.modified_at,
    "last_auth_at": func.coalesce(type_coerce(UserRow.last_auth_at, BigInteger), _NEVER),
}


@dataclass(frozen=True)
class UserFilter:
    """Filter of users. Empty fields do not restrict."""

    active: bool | None = None
    admin: bool | None = None
    name: str = ""
    """A part of the username and the display name, in any case."""

    def where(self) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = []
        if self.active is not None:
            conditions.append(UserRow.active.is_(self.active))
        if self.admin is not None:
            conditions.append(UserRow.admin.is_(self.admin))
        if self.name:
            conditions.append(contains_lowered(UserRow.username + " " + UserRow.display_name, self.name.lower()))
        return conditions


@dataclass(frozen=True)
class OwnedFilter:
    """Filter of workspaces or projects. Empty fields do not restrict."""

    part_of_name: str = ""
    """In any case."""
    name: str = ""
    archived: bool | None = None
    pinned: bool | None = None
    """True selects none: nothing can be pinned yet."""
    usernames: Sequence[str] = ()
    user_ids: Sequence[int] = ()
    """Owners, in addition to those of ``usernames``."""
    workspace_id: int | None = None
    """For projects."""

    def where(self, model: type[Owned]) -> list[ColumnElement[bool]]:
        conditions: list[ColumnElement[bool]] = []
        if self.part_of_name:
            conditions.append(contains_lowered(model.name, self.part_of_name.lower()))
        if self.name:
            conditions.append(model.name == self.name)
        if self.archived is not None:
            conditions.append(model.archived.is_(self.archived))
        if self.pinned:
            conditions.append(false())
        if self.usernames or self.user_ids:
            named = select(UserRow.id).where(UserRow.username.in_(self.usernames))
            conditions.append(or_(model.user_id.in_(self.user_ids), model.user_id.in_(named)))
        if self.workspace_id is not None:
            conditions.append(ProjectRow.workspace_id == self.workspace_id)
        return conditions


async def count_users(session: ReadSession, wanted: UserFilter) -> int:
    return await _count(session, UserRow, wanted.where())


async def page_of_users(
    session: ReadSession, wanted: UserFilter, *, by: UserOrder, descending: bool, offset: int, limit: int | None
) -> Sequence[UserRow]:
    """Returns one page; equal users are sorted by id."""
    return await _page(session, UserRow, wanted.where(), (_USER_ORDERS[by], UserRow.id), descending, offset, limit)


async def count_owned(session: ReadSession, model: type[Owned], wanted: OwnedFilter) -> int:
    return await _count(session, model, wanted.where(model))


async def page_of_owned(
    session: ReadSession,
    model: type[Owned],
    wanted: OwnedFilter,
    *,
    by: OwnedOrder,
    descending: bool,
    offset: int,
    limit: int | None,
) -> Sequence[Owned]:
    """Returns one page of workspaces or projects; equal ones are sorted by id."""
    columns = (model.id,) if by == "id" else (model.name, model.id)
    return await _page(session, model, wanted.where(model), columns, descending, offset, limit)


async def usernames(session: ReadSession, user_ids: Collection[int]) -> dict[int, str]:
    """Returns the usernames by id."""
    found: dict[int, str] = {}
    for batch in batched(list(user_ids), MAX_IDS_A_STATEMENT):
        query = select(UserRow.id, UserRow.username).where(UserRow.id.in_(batch))
        found.update((user_id, name) for user_id, name in await session.execute(query))
    return found


async def agent_links(session: ReadSession, user_ids: Collection[int]) -> dict[int, dict[str, Any] | None]:
    """Returns as whom agents run the tasks of each user; None for a user without a link."""
    found: dict[int, dict[str, Any] | None] = {}
    for batch in batched(list(user_ids), MAX_IDS_A_STATEMENT):
        rows = await session.execute(select(UserRow.id, UserRow.agent_user_group).where(UserRow.id.in_(batch)))
        found.update((user_id, link) for user_id, link in rows)
    return found


async def ids_of_names(session: ReadSession, usernames: Collection[str]) -> Sequence[int]:
    """Returns the ids of the users that have one of the usernames, in this spelling."""
    return (await session.scalars(select(UserRow.id).where(UserRow.username.in_(usernames)))).all()


async def count_projects(session: ReadSession, workspace_ids: Collection[int]) -> dict[int, int]:
    """Returns the number of projects by workspace; workspaces without any are absent."""
    counts: dict[int, int] = {}
    for batch in batched(list(workspace_ids), MAX_IDS_A_STATEMENT):
        query = select(ProjectRow.workspace_id, func.count()).where(ProjectRow.workspace_id.in_(batch))
        counted = await session.execute(query.group_by(ProjectRow.workspace_id))
        counts.update((workspace_id, number) for workspace_id, number in counted)
    return counts


async def _count(session: ReadSession, model: type[Listed], where: Sequence[ColumnElement[bool]]) -> int:
    return (await session.execute(select(func.count()).select_from(model).where(*where))).scalar_one()


async def _page(
    session: ReadSession,
    model: type[Listed],
    where: Sequence[ColumnElement[bool]],
    columns: Sequence[SQLColumnExpression[Any]],
    descending: bool,
    offset: int,
    limit: int | None,
) -> Sequence[Listed]:
    order = [column.desc() for column in columns] if descending else columns
    query = select(model).where(*where).order_by(*order).offset(offset).limit(limit)
    return (await session.scalars(query)).all()
