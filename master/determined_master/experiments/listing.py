"""Which experiments a list shows, in which order."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Query
from sqlalchemy import ColumnElement, func
from sqlalchemy.ext.asyncio import AsyncSession

from determined.errors import BadRequest
from determined.states import ExperimentState
from determined_master.db.models import ExperimentRow
from determined_master.experiments import repository
from determined_master.users import repository as users
from determined_master.wire.enums import is_descending
from determined_master.wire.model import Pagination, Wire
from determined_master.wire.paging import Window


class Filters(Wire):
    """The query of ``GET /experiments``."""

    archived: bool | None = None
    description: str = ""
    name: str = ""
    labels: Annotated[list[str], Query()] = []
    states: Annotated[list[str], Query()] = []
    users: Annotated[list[str], Query()] = []
    user_ids: Annotated[list[int], Query()] = []
    project_id: int = 0
    offset: int = 0
    limit: int = 0
    order_by: str = ""
    sort_by: str = ""
    show_trial_data: bool = False


_SORT: dict[str, Any] = {
    "SORT_BY_UNSPECIFIED": ExperimentRow.id,
    "SORT_BY_ID": ExperimentRow.id,
    "SORT_BY_DESCRIPTION": ExperimentRow.description,
    "SORT_BY_START_TIME": ExperimentRow.start_time,
    "SORT_BY_END_TIME": ExperimentRow.end_time,
    "SORT_BY_STATE": ExperimentRow.state,
    "SORT_BY_PROGRESS": ExperimentRow.progress,
    "SORT_BY_USER": ExperimentRow.user_id,
    "SORT_BY_NAME": ExperimentRow.name,
    "SORT_BY_FORKED_FROM": ExperimentRow.parent_id,
    "SORT_BY_RESOURCE_POOL": ExperimentRow.pool,
    "SORT_BY_PROJECT_ID": ExperimentRow.project_id,
}


async def find(
    session: AsyncSession, filters: Filters, states: Sequence[ExperimentState]
) -> tuple[Sequence[ExperimentRow], Pagination]:
    where: list[ColumnElement[bool]] = []
    if filters.archived is not None:
        where.append(ExperimentRow.archived == filters.archived)
    if filters.name:
        where.append(func.lower(ExperimentRow.name).contains(filters.name.lower(), autoescape=True))
    if filters.description:
        where.append(func.lower(ExperimentRow.description).contains(filters.description.lower(), autoescape=True))
    if states:
        where.append(ExperimentRow.state.in_(states))
    if filters.project_id:
        where.append(ExperimentRow.project_id == filters.project_id)
    owners = set(filters.user_ids)
    if filters.users:
        owners |= {u.id for u in await users.all_users(session) if u.username in filters.users}
    if filters.users or filters.user_ids:
        where.append(ExperimentRow.user_id.in_(owners))
    column = _SORT.get(filters.sort_by or "SORT_BY_ID")
    if column is None:
        raise BadRequest(f"cannot sort by {filters.sort_by}; {', '.join(sorted(_SORT))} are possible")
    order = [column.desc() if is_descending(filters.order_by) else column.asc(), ExperimentRow.id.asc()]
    if filters.labels:
        return await _with_labels(session, where, order, filters)
    _, total = await repository.page(session, where, order, 0, 0)
    window = Window.of(filters.offset, filters.limit, total)
    rows, _ = await repository.page(session, where, order, window.offset, window.limit)
    return rows, window.pagination(total, len(rows), filters.limit)


async def _with_labels(
    session: AsyncSession, where: Sequence[ColumnElement[bool]], order: Sequence[Any], filters: Filters
) -> tuple[Sequence[ExperimentRow], Pagination]:
    """Labels are few words in JSON; those are compared here, not by the database."""
    rows, _ = await repository.page(session, where, order, 0, None)
    wanted = set(filters.labels)
    found = [row for row in rows if wanted <= set(row.labels)]
    window = Window.of(filters.offset, filters.limit, len(found))
    end = len(found) if window.limit is None else window.offset + window.limit
    shown = found[window.offset : end]
    return shown, window.pagination(len(found), len(shown), filters.limit)
