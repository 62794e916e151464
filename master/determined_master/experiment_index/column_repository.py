"""SQL for the names of columns."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple, cast

from sqlalchemy import String, column, func, select, values

from determined_master.db.models import ColumnCountRow, ColumnNameRow
from determined_master.db.session import ReadSession
from determined_master.db.statements.text_search import contains_lowered
from determined_master.experiment_index.column_names import STATISTICS, Kind, ListedColumn, Type

N, C = ColumnNameRow, ColumnCountRow
_SUFFIXES = [
    *(("metric", f".{statistic}", str(place)) for place, statistic in enumerate(STATISTICS)),
    ("hyperparameter", "", "0"),
    ("config", "", "0"),
]


class Range(NamedTuple):
    name: str
    minimum: float
    maximum: float


async def named(session: ReadSession, names: Collection[str]) -> dict[tuple[str, str], int]:
    """Returns (kind, name) → id of all names that any experiment ever had."""
    rows = (await session.execute(select(N.kind, N.name, N.id).where(N.name.in_(names)))).all()
    return {(row[0], row[1]): row[2] for row in rows}


async def every_name(session: ReadSession, limit: int) -> Sequence[tuple[str, str]]:
    """Returns kind and name of up to ``limit`` columns, to find out which one was meant."""
    return [(row[0], row[1]) for row in (await session.execute(select(N.kind, N.name).limit(limit))).all()]


async def page(
    session: ReadSession, *, query: str, kinds: Collection[Kind], project_id: int, limit: int | None, offset: int = 0
) -> tuple[list[ListedColumn], int]:
    """Returns the columns of the kinds whose name contains ``query``, by kind and name, and their total number."""
    suffix = values(column("kind", String), column("suffix", String), column("place", String), name="suffixes")
    suffixes = suffix.data(_SUFFIXES).cte("suffixes")
    counted = select(C.name_id, func.sum(C.count).label("count")).group_by(C.name_id)
    if project_id:
        counted = select(C.name_id, C.count.label("count")).where(C.project_id == project_id)
    counts = counted.subquery()
    whole: Any = N.name + suffixes.c.suffix
    values_counted = (
        select(whole, N.kind, N.type, counts.c.count)
        .join(suffixes, suffixes.c.kind == N.kind)
        .join(counts, counts.c.name_id == N.id)
        .where(N.kind.in_(kinds), counts.c.count > 0)
    )
    if query:
        values_counted = values_counted.where(contains_lowered(whole, query.lower()))
    total = (await session.execute(select(func.count()).select_from(values_counted.subquery()))).scalar_one()
    ordered = values_counted.order_by(N.kind, N.name, suffixes.c.place).offset(offset).limit(limit)
    return [ListedColumn(*row) for row in (await session.execute(ordered)).all()], total


async def every_stored(session: ReadSession, kinds: Collection[Kind], project_id: int) -> list[tuple[Kind, str, Type]]:
    """Returns the names, without statistics, of which a project has a value, by kind and name."""
    query = select(N.kind, N.name, N.type).join(C, C.name_id == N.id)
    query = query.where(C.project_id == project_id, C.count > 0, N.kind.in_(kinds)).order_by(N.kind, N.name)
    return [(cast(Kind, row[0]), row[1], cast(Type, row[2])) for row in await session.execute(query)]


async def ranges(session: ReadSession, project_id: int) -> list[Range]:
    """Returns the range of the last values of each numeric metric."""
    query = (
        select(N.name, func.min(C.minimum), func.max(C.maximum))
        .join(C, C.name_id == N.id)
        .where(N.kind == "metric", C.minimum.is_not(None), C.count > 0)
        .group_by(N.name)
        .order_by(N.name)
    )
    if project_id:
        query = query.where(C.project_id == project_id)
    rows = (await session.execute(query)).all()
    return [Range(name, low, high) for name, low, high in rows if low is not None and high is not None]
