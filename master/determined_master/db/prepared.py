"""Statements that are compiled once, for what the master does many times for each trial.

SQLAlchemy's part of a small statement takes several times as long as SQLite's. On SQLite a prepared statement goes to
the driver of the session's connection, in the transaction of the session. On PostgreSQL it goes to SQLAlchemy. Both
give the same rows and raise the same errors.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from typing import Any, Generic, TypeVar, TypeVarTuple

from sqlalchemy import Connection, Insert, Select, Table, Update, bindparam, insert, select, update
from sqlalchemy.engine import Dialect
from sqlalchemy.sql.dml import ReturningInsert, ReturningUpdate

from determined_master.db.base import Base
from determined_master.db.compiled_statement import CompiledStatement
from determined_master.db.kept_sessions import DRIVER
from determined_master.db.queue_changes import table_fed_by, wrote
from determined_master.db.row_objects import row_objects
from determined_master.db.session import ReadSession, WriteSession
from determined_master.db.sqlite_connection import SqliteConnection

T = TypeVar("T")
R = TypeVar("R", bound=Base)
Ts = TypeVarTuple("Ts")
MAX_SINGLE_ROWS = 8
"""So many rows are inserted one by one: many at once change to the connection's thread."""


class Prepared(Generic[*Ts]):
    """A statement whose values the caller gives by the names of its ``bindparam``; lists with ``expanding=True``.

    It is kept for as long as the master runs, so it is a constant of its module.

    >>> _NAMES = Prepared(select(UserRow.id, UserRow.username).where(UserRow.id == bindparam("id")))  # doctest: +SKIP
    >>> await _NAMES.rows(session, id=7)  # doctest: +SKIP
    [(7, 'ann')]
    """

    def __init__(
        self,
        statement: Select[*Ts] | Insert | Update | ReturningInsert[*Ts] | ReturningUpdate[*Ts],
        names: Sequence[str] | None = None,
    ) -> None:
        """``names``: the columns of an insertion without values."""
        self._statement = statement
        self._names = names
        self._compiled: CompiledStatement | None = None
        self._fed = table_fed_by(statement)
        """The table that the scheduler's state is made from, if the statement changes that."""

    async def rows(self, session: ReadSession, **values: object) -> list[tuple[*Ts]]:
        """Returns all rows. Where an element is a mapped class, it is an object of the session."""
        if self._fed is not None:
            wrote(session, self._fed)
        driver = await _driver_of(session)
        if driver is None:
            return [tuple(row) for row in await session.execute(self._statement, values)]
        compiled = self._of(session)
        answer = await compiled.execute(session, driver, values)
        return [compiled.row(session, row) for row in answer.rows]

    async def pages(self, session: ReadSession, size: int, **values: object) -> AsyncIterator[list[tuple[*Ts]]]:
        """Yields all rows, so many at a time: between two pages the event loop runs its other tasks."""
        driver = await _driver_of(session)
        if driver is None:
            # A cursor of the server: the driver would make all rows at once.
            found = await session.stream(self._statement, values, execution_options={"yield_per": size})
            async for page in found.partitions():
                yield [tuple(row) for row in page]
                await asyncio.sleep(0)
            return
        compiled = self._of(session)
        rows = list(reversed((await compiled.execute(session, driver, values)).rows))
        while rows:
            page = rows[: -size - 1 : -1]
            del rows[-size:]  # to free very many at once takes time, too
            yield [compiled.row(session, row) for row in page]
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
        if self._fed is not None:
            wrote(session, self._fed)
        driver = await _driver_of(session)
        if driver is None:
            await (await session.connection()).execute(self._statement, rows)
        elif len(rows) > 1:
            await self._of(session).execute_many(session, driver, rows)
        else:
            for row in rows:
                await self._of(session).execute(session, driver, row)

    def rows_in(self, connection: Connection, **values: object) -> list[tuple[*Ts]]:
        """Like ``rows`` for the writer of reports, which has no session: without objects."""
        if connection.dialect.name != "sqlite":
            return [tuple(row) for row in connection.execute(self._statement, values)]
        return self._for(connection.dialect).rows_in(connection, values)

    def execute_in(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Like ``execute`` for the writer of reports."""
        if connection.dialect.name == "sqlite":
            self._for(connection.dialect).execute_in(connection, rows)
        else:
            connection.execute(self._statement, rows)

    async def insert(self, session: WriteSession, driver: SqliteConnection, values: Mapping[str, Any]) -> int | None:
        """Inserts a row and returns its number."""
        if self._fed is not None:
            wrote(session, self._fed)
        return (await self._of(session).execute(session, driver, values)).lastrowid

    def _of(self, session: ReadSession) -> CompiledStatement:
        return self._compiled or self._for(session.get_bind().dialect)

    def _for(self, dialect: Dialect) -> CompiledStatement:
        # All engines of SQLite write the same text and convert values in the same way.
        if self._compiled is None:
            self._compiled = CompiledStatement(self._statement, dialect, self._names)
        return self._compiled


async def get_row(session: ReadSession, model: type[R], key: object) -> R | None:
    """Returns the object of a row by its primary key; that of the session where it has one, without a statement."""
    objects = row_objects(model)
    known = session.identity_map.get(objects.identity(key))
    return known if known is not None else await _by_key(model).first(session, of_key=key)


async def insert_rows(session: WriteSession, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows that all have the same columns. Missing columns get their default, which is no function."""
    if rows:
        prepared, defaults = _insertion(table, tuple(rows[0]))
        await prepared.execute(session, [{**defaults, **row} for row in rows] if defaults else rows)


async def update_rows(session: WriteSession, model: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Changes rows by their primary keys. Each of ``rows`` has the key and the same columns. Objects of the session are
    not changed."""
    if rows:
        (key,) = row_objects(model).primary_keys
        names = tuple(name for name in rows[0] if name != key)
        values = [{"of_key": row[key]} | {f"to_{name}": row[name] for name in names} for row in rows]
        await _update(model, names).execute(session, values)


async def add_rows(session: WriteSession, rows: Sequence[Base]) -> None:
    """Inserts new objects, which are objects of the session then."""
    driver = await _driver_of(session)
    if driver is None or len(rows) > MAX_SINGLE_ROWS:
        session.add_all(rows)
        await session.flush()
        return
    for row in rows:
        objects = row_objects(type(row))
        values = objects.values_of(row)
        prepared, _ = _insertion(objects.table, tuple(values))
        number = await prepared.insert(session, driver, values)
        objects.attach_new(session, row, number)


@cache
def _by_key(model: type[Base]) -> Prepared[Any]:
    (key,) = row_objects(model).table.primary_key.columns
    return Prepared(select(model).where(key == bindparam("of_key")))


@cache
def _update(model: type[Base], names: tuple[str, ...]) -> Prepared[()]:
    table = row_objects(model).table
    (key,) = table.primary_key.columns
    values: dict[Any, Any] = {table.c[name]: bindparam(f"to_{name}") for name in names}
    return Prepared(update(table).where(key == bindparam("of_key")).values(values))


@cache
def _insertion(table: Table, names: tuple[str, ...]) -> tuple[Prepared[()], dict[str, Any]]:
    """Returns the statement and the values of the columns that are not in ``names``."""
    others = [each for each in table.columns if each.default is not None and each.name not in names]
    defaults = {each.name: each.default.arg for each in others if each.default.is_scalar}  # type: ignore[union-attr]
    if len(defaults) < len(others):
        raise ValueError(f"the rows of {table.name} lack a column whose default is a function")
    return Prepared(insert(table), [*names, *defaults]), defaults


async def _driver_of(session: ReadSession) -> SqliteConnection | None:
    """Returns the driver of a session of SQLite, in a transaction; None for PostgreSQL."""
    driver: SqliteConnection | None = session.info.get(DRIVER)
    if driver is not None:
        driver.begin()
        if session.in_nested_transaction():
            await session.connection()  # sets the savepoint
    return driver
