"""Lists the available columns and the values in them."""

from dataclasses import replace
from datetime import datetime

from determined_master.db.session import ReadSession
from determined_master.experiment_index import column_repository, repository
from determined_master.experiment_index.column_names import OWN, STATISTICS, Kind, ListedColumn, Statistic, Type
from determined_master.experiment_index.filter_sql import listed
from determined_master.experiment_index.list_query import known, project_of

STORED: tuple[Kind, ...] = ("config", "hyperparameter", "metric")


async def page(
    session: ReadSession, query: str, kind: Kind | None, limit: int | None, project_id: int | None
) -> tuple[list[ListedColumn], int]:
    """The experiment's own columns first; every experiment has a value of these."""
    project = project_of(project_id)
    own: list[ListedColumn] = []
    if kind in (None, "experiment"):
        count = await repository.count(session, listed(project, archived=True), ())
        word = query.lower()
        named = [one for one in OWN.values() if word in one.name.lower() or word in one.display_name.lower()]
        own = [ListedColumn(one.name, "experiment", one.type, count) for one in named]
    if kind == "experiment":
        return own[:limit], len(own)
    kinds = STORED if kind is None else (kind,)
    left = None if limit is None else max(0, limit - len(own))
    stored, total = await column_repository.page(session, query=query, kinds=kinds, project_id=project, limit=left)
    return [*own[:limit], *map(_typed, stored)], len(own) + total


async def every(session: ReadSession, project_id: int) -> list[tuple[Kind, str, Type]]:
    """Returns kind, column and type of all columns of the older page: tuples, since there are thousands."""
    columns: list[tuple[Kind, str, Type]] = []
    for own in OWN.values():
        columns.append(("experiment", own.name, own.type))
    for kind, name, type_ in await column_repository.every_stored(session, ("hyperparameter", "metric"), project_id):
        if kind == "metric":
            columns.extend(("metric", f"{name}.{s}", _of_statistic(s, type_)) for s in STATISTICS)
        else:
            columns.append((kind, name, type_))
    return columns


def _typed(one: ListedColumn) -> ListedColumn:
    if one.kind != "metric":
        return one
    statistic: Statistic = "last" if one.column.endswith(".last") else "mean"
    return replace(one, type=_of_statistic(statistic, one.type))


def _of_statistic(statistic: Statistic, last: Type) -> Type:
    """Returns the type of a column: minimum, maximum and mean are numbers, whatever the last value is."""
    return last if statistic == "last" else "number"


async def words(session: ReadSession, column: str, query: str, limit: int, now: datetime) -> list[str]:
    """Returns words of a column that contain ``query``; none for a column without words, or an unknown one."""
    if column == "archived":
        return [word for word in ("false", "true") if query.lower() in word]
    if column in OWN and OWN[column].type != "text":
        return []
    by = (await known(session, [column])).get(column)
    if by is None:
        return []
    return list(await repository.words(session, by, listed(0, archived=True), query, limit, now))
