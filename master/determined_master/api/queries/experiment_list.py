"""The list of experiments of ``GET /experiments``: filters, order and pages."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, TypedDict

from fastapi import Query
from pydantic import Field

from determined.states import ExperimentState
from determined_master.api.pagination import Window
from determined_master.api.schemas.base import BoundedInt, Pagination, Wire
from determined_master.api.schemas.enums import is_descending
from determined_master.api.sorting import column_of
from determined_master.db.models import ExperimentRow
from determined_master.db.session import ReadSession
from determined_master.experiments import repository
from determined_master.experiments.order_queries import Order
from determined_master.experiments.repository import Selection
from determined_master.users import list_queries as users

MAX_ID = 2**62
"""Larger than any id; a bound may be moved by one."""
FilterId = Annotated[int, Field(ge=-MAX_ID, le=MAX_ID)]


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
    id_lt: Annotated[FilterId | None, Field(alias="experimentIdFilter.lt")] = None
    id_lte: Annotated[FilterId | None, Field(alias="experimentIdFilter.lte")] = None
    id_gt: Annotated[FilterId | None, Field(alias="experimentIdFilter.gt")] = None
    id_gte: Annotated[FilterId | None, Field(alias="experimentIdFilter.gte")] = None
    id_incl: Annotated[list[FilterId], Field(alias="experimentIdFilter.incl")] = []
    id_not_in: Annotated[list[FilterId], Field(alias="experimentIdFilter.notIn")] = []


_SORT: dict[str, Order] = {
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
    "SORT_BY_NUM_TRIALS": "trials",
    "SORT_BY_CHECKPOINT_COUNT": "checkpoints",
    "SORT_BY_CHECKPOINT_SIZE": "checkpoint_size",
    "SORT_BY_SEARCHER_METRIC_VAL": "searcher_metric",
}


async def find(
    session: ReadSession, filters: Filters, states: Sequence[ExperimentState]
) -> tuple[Sequence[ExperimentRow], Pagination]:
    owners: set[int] | None = None
    if filters.users or filters.user_ids:
        owners = {*filters.user_ids, *await users.ids_of_names(session, filters.users)}
    by: Order = column_of(filters.sort_by, _SORT, "id")
    wanted = Selection(
        archived=filters.archived,
        name=filters.name,
        description=filters.description,
        states=states,
        project_id=max(0, filters.project_id),
        owners=owners,
        labels=filters.labels,
        **_of_ids(filters),
    )
    page = partial(repository.page, session, wanted, by=by, descending=is_descending(filters.order_by))
    _, total = await page(offset=0, limit=0)
    window = Window.of(filters.offset, filters.limit, total)
    rows, _ = await page(offset=window.offset, limit=window.limit)
    return rows, window.pagination(total, len(rows), filters.limit)


class _OfIds(TypedDict):
    ids: Sequence[int] | None
    excluded: Sequence[int]
    above: int | None
    below: int | None


def _of_ids(filters: Filters) -> _OfIds:
    return {
        "ids": filters.id_incl or None,
        "excluded": filters.id_not_in,
        "above": max(_given(filters.id_gt, filters.id_gte, -1), default=None),
        "below": min(_given(filters.id_lt, filters.id_lte, 1), default=None),
    }


def _given(bound: int | None, inclusive: int | None, step: int) -> list[int]:
    """Returns the given bounds; an inclusive bound is moved by ``step`` to make it exclusive."""
    return [*([] if bound is None else [bound]), *([] if inclusive is None else [inclusive + step])]
