"""Which experiments a list shows, in which order."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from fastapi import Query
from sqlalchemy.ext.asyncio import AsyncSession

from determined.errors import BadRequest
from determined.states import ExperimentState
from determined_master.api.pagination import Window
from determined_master.api.schemas.base import BoundedInt, Pagination, Wire
from determined_master.api.schemas.enums import is_descending
from determined_master.db.models import ExperimentRow
from determined_master.experiments import repository
from determined_master.experiments.repository import Selection
from determined_master.users import repository as users


class Filters(Wire):
    """The query of ``GET /experiments``."""

    archived: bool | None = None
    description: str = ""
    name: str = ""
    labels: Annotated[list[str], Query()] = []
    states: Annotated[list[str], Query()] = []
    users: Annotated[list[str], Query()] = []
    user_ids: Annotated[list[BoundedInt], Query()] = []
    project_id: BoundedInt = 0
    offset: BoundedInt = 0
    limit: BoundedInt = 0
    order_by: str = ""
    sort_by: str = ""
    show_trial_data: bool = False


_SORT = {
    "SORT_BY_UNSPECIFIED": "id",
    "SORT_BY_ID": "id",
    "SORT_BY_DESCRIPTION": "description",
    "SORT_BY_START_TIME": "start_time",
    "SORT_BY_END_TIME": "end_time",
    "SORT_BY_STATE": "state",
    "SORT_BY_PROGRESS": "progress",
    "SORT_BY_USER": "user_id",
    "SORT_BY_NAME": "name",
    "SORT_BY_FORKED_FROM": "parent_id",
    "SORT_BY_RESOURCE_POOL": "pool",
    "SORT_BY_PROJECT_ID": "project_id",
}


async def find(
    session: AsyncSession, filters: Filters, states: Sequence[ExperimentState]
) -> tuple[Sequence[ExperimentRow], Pagination]:
    owners: set[int] | None = None
    if filters.users or filters.user_ids:
        owners = set(filters.user_ids)
        if filters.users:
            owners |= {u.id for u in await users.all_users(session) if u.username in filters.users}
    by = _SORT.get(filters.sort_by or "SORT_BY_ID")
    if by is None:
        raise BadRequest(f"cannot sort by {filters.sort_by}; {', '.join(sorted(_SORT))} are possible")
    wanted = Selection(filters.archived, filters.name, filters.description, states, filters.project_id, owners)
    page = partial(repository.page, session, wanted, by=by, descending=is_descending(filters.order_by))
    if filters.labels:
        rows, _ = await page(offset=0, limit=None)
        return _with_labels(rows, filters)
    _, total = await page(offset=0, limit=0)
    window = Window.of(filters.offset, filters.limit, total)
    rows, _ = await page(offset=window.offset, limit=window.limit)
    return rows, window.pagination(total, len(rows), filters.limit)


def _with_labels(rows: Sequence[ExperimentRow], filters: Filters) -> tuple[Sequence[ExperimentRow], Pagination]:
    """Labels are few words in JSON; those are compared here, not by the database."""
    wanted = set(filters.labels)
    found = [row for row in rows if wanted <= set(row.labels)]
    window = Window.of(filters.offset, filters.limit, len(found))
    end = len(found) if window.limit is None else window.offset + window.limit
    shown = found[window.offset : end]
    return shown, window.pagination(len(found), len(shown), filters.limit)
