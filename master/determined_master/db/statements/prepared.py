"""Constant statements, for what the master does many times for each trial.

SQLAlchemy finds the text of a constant statement sooner than that of one that is built anew. A statement without
mapped classes goes to the session's connection, in the session's transaction: the session itself would take as long
again.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, TypeVarTuple

from sqlalchemy import Delete, Insert, Select, Update
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

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

    async def rows(self, session: ReadSession, **values: object) -> list[tuple[*Ts]]:
        """Returns all rows. Where an element is a mapped class, it is an object of the session."""
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
            await (await connection_of(session)).execute(self._statement, rows)
