"""Constant statements, for what the master does many times for each trial.

SQLAlchemy finds the text of a constant statement sooner than that of one that is built anew. A statement without
mapped classes goes to the session's connection, in the session's transaction: the session itself would take as long
again.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from typing import Any, Generic, TypeVar, TypeVarTuple

from sqlalchemy import Delete, Insert, Select, Table, Update, bindparam, insert, update
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

from determined_master.db.base import Base, table_of
from determined_master.db.queue_changes import table_fed_by, wrote
from determined_master.db.session import ReadSession, WriteSession
from determined_master.db.session_pool import connection_of

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Prepared(Generic[*Ts]):
    """A statement whose values the caller gives by the names of its ``bindparam``; lists with ``expanding=True``.

    It is kept for as long as the master runs, so it is a constant of its module.

    >>> _NAMES = Prepared(select(UserRow.id, UserRow.username).where(UserRow.id == bindparam("id")))  # doctest: +SKIP
    >>> await _NAMES.rows(session, id=7)  # doctest: +SKIP
    [(7, 'ann')]
    """

    def __init__(
        self, statement: Select[*Ts] | Insert | Update | Delete | ReturningInsert[*Ts] | ReturningUpdate[*Ts]
    ) -> None:
        self._statement = statement
        self._has_objects = isinstance(statement, Select) and any(
            isinstance(element["expr"], type) for element in statement.column_descriptions
        )
        self._fed = table_fed_by(statement)
        """The table that the scheduler's state is made from, if the statement changes that."""

    async def rows(self, session: ReadSession, **values: object) -> list[tuple[*Ts]]:
        """Returns all rows. Where an element is a mapped class, it is an object of the session."""
        if self._fed is not None:
            wrote(session, self._fed)
        executor = session if self._has_objects else await connection_of(session)
        return [tuple(row) for row in await executor.execute(self._statement, values)]

    async def pages(self, session: ReadSession, size: int, **values: object) -> AsyncIterator[list[tuple[*Ts]]]:
        """Yields all rows, so many at a time: between two pages the event loop runs its other tasks."""
        found = await session.stream(self._statement, values, execution_options={"yield_per": size})
        async for page in found.partitions():
            yield [tuple(row) for row in page]
            await asyncio.sleep(0)

    async def scalars(self: "Prepared[T]", session: ReadSession, **values: object) -> list[T]:
        """Returns the only element of each row."""
        return [element for (element,) in await self.rows(session, **values)]

    async def first(self: "Prepared[T]", session: ReadSession, **values: object) -> T | None:
        """Returns the only element of the first row, or None."""
        found = await self.scalars(session, **values)
        return found[0] if found else None

    async def execute(self, session: WriteSession, rows: Sequence[Mapping[str, Any]]) -> None:
        """Executes a change that returns nothing once for each of ``rows``, which are values by name."""
        if rows:
            if self._fed is not None:
                wrote(session, self._fed)
            await (await connection_of(session)).execute(self._statement, rows)


async def insert_rows(session: WriteSession, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows that all have the same columns. Missing columns get their default."""
    await _insertion(table).execute(session, rows)


async def update_rows(session: WriteSession, model: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Changes rows by their primary keys. Each of ``rows`` has the key and the same columns. Objects of the session are
    not changed."""
    if rows:
        (key,) = (column.name for column in table_of(model).primary_key.columns)
        names = tuple(name for name in rows[0] if name != key)
        values = [{"of_key": row[key]} | {f"to_{name}": row[name] for name in names} for row in rows]
        await _update(model, names).execute(session, values)


@cache
def _update(model: type[Base], names: tuple[str, ...]) -> Prepared[()]:
    table = table_of(model)
    (key,) = table.primary_key.columns
    values: dict[Any, Any] = {table.c[name]: bindparam(f"to_{name}") for name in names}
    return Prepared(update(table).where(key == bindparam("of_key")).values(values))


@cache
def _insertion(table: Table) -> Prepared[()]:
    return Prepared(insert(table))
