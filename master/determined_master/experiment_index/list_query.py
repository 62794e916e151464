"""Searches experiments: resolves the columns of a question, then runs few queries, whatever the number of results."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from determined.config.findings import nearest
from determined.errors import BadRequest
from determined_master.db.models import ExperimentRow
from determined_master.db.models.base import MAX_INT64
from determined_master.db.session import ReadSession
from determined_master.experiment_index import column_repository as catalogue
from determined_master.experiment_index import filters, repository
from determined_master.experiment_index.column_names import OWN, STATISTICS, bare_readings, readings
from determined_master.experiment_index.filter_sql import Condition, Conditions, StoredColumn, listed
from determined_master.experiment_index.repository import ListedExperiment
from determined_master.json_numbers import outward

MAX_COMPARED = 2000
_BOUND_TO_ALL = frozenset({"startTime", "endTime"})

Cells = dict[str, float | str | bool | None]


@dataclass(frozen=True)
class Question:
    """The question as it was sent."""

    project_id: int | None = None
    filter: str | None = None
    sort: str | None = None
    show_archived: bool = False


class ListPage(NamedTuple):
    total: int
    rows: list[tuple[ListedExperiment, Cells]]
    unknown: list[str]


class Search:
    """One question over one frozen view. Raises BadRequest for an invalid filter or order."""

    def __init__(self, session: ReadSession, now: datetime, question: Question) -> None:
        self._session = session
        self._now = now
        self._filter = filters.parse(question.filter)
        self._order = filters.parse_sort(question.sort)
        self._project_id = project_of(question.project_id)
        self._archived = question.show_archived or self._filter.show_archived
        self._known: dict[str, StoredColumn | str] = {}

    async def page(
        self, columns: Sequence[str], offset: int, limit: int, only: Collection[int] | None = None
    ) -> ListPage:
        """With ``only`` the page is of these experiments; the total is of all that are found."""
        unknown = await self._look_up(columns)
        total = await self.total()
        found = await self.ids(offset=offset, limit=limit, only=only)
        shown = await repository.shown(self._session, found)
        stored = {c: s for c in columns if isinstance(s := self._known.get(c), StoredColumn)}
        cells = await repository.cells(self._session, stored, found)
        none = {column: None for column in columns if column in unknown}
        rows = [(row, none | outward(cells[row.experiment.id])) for row in shown]
        return ListPage(total, rows, unknown)

    async def total(self) -> int:
        await self._look_up()
        return await repository.count(self._session, self._where(), self._filter.columns)

    async def ids(self, *, offset: int = 0, limit: int | None = None, only: Collection[int] | None = None) -> list[int]:
        await self._look_up()
        where = self._where() if only is None else [*self._where(), ExperimentRow.id.in_(only)]
        columns = [*self._filter.columns, *(by.column for by in self._order)]
        conditions = Conditions(self._known, self._now)
        return await repository.ids(self._session, conditions, where, columns, self._order, offset=offset, limit=limit)

    async def groups(self, by: str) -> list[tuple[str | float | None, int]]:
        unknown = await self._look_up([by])
        if unknown:
            raise await self._meant(by)
        if by in _BOUND_TO_ALL:
            raise BadRequest(f"cannot group by {by}: it is a time")
        columns = [*self._filter.columns, by]
        found = await repository.groups(self._session, self._where(), columns, self._known[by], self._now)
        return [(number if word is None else word, count) for number, word, count in found]

    def _where(self) -> list[Condition]:
        conditions = Conditions(self._known, self._now)
        return [*listed(self._project_id, archived=self._archived), conditions.where(self._filter.group)]

    async def _look_up(self, more: Collection[str] = ()) -> list[str]:
        """Raises if filter or order names an unknown column; returns which of ``more`` are unknown."""
        needed = [*self._filter.columns, *(by.column for by in self._order)]
        wanted = {*needed, *more} - self._known.keys()
        self._known |= await known(self._session, wanted)
        for column in needed:
            if column not in self._known:
                raise await self._meant(column)
        return [column for column in dict.fromkeys(more) if column not in self._known]

    async def _meant(self, column: str) -> BadRequest:
        candidates = list(OWN)
        for kind, name in await catalogue.every_name(self._session, MAX_COMPARED):
            candidates += [f"{name}.{s}" for s in STATISTICS] if kind == "metric" else [name]
        near = nearest(column, candidates)
        hint = f'; did you mean "{near}"?' if near else ""
        return BadRequest(f"there is no column {column[:100]!r}{hint}")


async def known(session: ReadSession, columns: Collection[str]) -> dict[str, StoredColumn | str]:
    """Returns the known columns."""
    known_columns: dict[str, StoredColumn | str] = {column: column for column in columns if column in OWN}
    meant = {column: [*readings(column), *bare_readings(column)] for column in columns if column not in OWN}
    names = {reading.name for of_one in meant.values() for reading in of_one}
    ids = await catalogue.named(session, names) if names else {}
    for column, of_one in meant.items():
        for reading in of_one:
            if (reading.kind, reading.name) in ids:
                known_columns[column] = StoredColumn(ids[reading.kind, reading.name], reading.statistic, reading.metric)
                break
    return known_columns


def project_of(project_id: int | None) -> int:
    """Returns the project id; 0 means any."""
    number = project_id or 0
    if not 0 <= number <= MAX_INT64:
        raise BadRequest(f"there is no project {number}")
    return number
