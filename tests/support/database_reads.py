"""Records what happens in a database meanwhile: loaded objects and statements."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from sqlalchemy import Engine, event

from determined_master.db.base import Base
from determined_master.db.row_objects import RowObjects
from determined_master.db.session import Database, ReadSession
from determined_master.db.sqlite_connection import Answer, SqliteConnection


@contextmanager
def loads(model: type[Any]) -> Iterator[list[Any]]:
    """Yields the list of objects of ``model`` that sessions load meanwhile."""
    loaded: list[Any] = []
    made = RowObjects.of

    def note(target: Any, _context: Any) -> None:
        loaded.append(target)

    def noted(maker: RowObjects, session: ReadSession, values: Sequence[Any]) -> Base | None:
        row = made(maker, session, values)
        if isinstance(row, model):
            loaded.append(row)
        return row

    event.listen(model, "load", note)
    try:
        with patch.object(RowObjects, "of", noted):
            yield loaded
    finally:
        event.remove(model, "load", note)


@contextmanager
def reads(database: Database) -> Iterator[list[str]]:
    """Yields the list of statements of read sessions meanwhile, those of the master's loops among them."""
    with _statements_of(database.read_engine.sync_engine, only_reads=True) as statements:
        yield statements


@contextmanager
def writes(database: Database) -> Iterator[list[str]]:
    """Yields the list of statements of write sessions meanwhile, those of the master's loops among them."""
    with _statements_of(database.write_engine.sync_engine, only_reads=False) as statements:
        yield statements


@contextmanager
def _statements_of(engine: Engine, *, only_reads: bool) -> Iterator[list[str]]:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    if engine.dialect.name == "sqlite":
        with executions(lambda each: statements.append(each.sql), only_reads=only_reads):
            yield statements
        return
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)


class Execution(NamedTuple):
    """A statement that a connection of SQLite executes."""

    sql: str
    values: Sequence[Any]
    is_many: bool
    begins: bool
    """True if it is the first one of its transaction."""


@contextmanager
def executions(note: Callable[[Execution], object], *, only_reads: bool) -> Iterator[None]:
    """Calls ``note`` before each statement of the reading, or of the writing connections of SQLite."""
    execute = SqliteConnection.execute

    async def noted(connection: SqliteConnection, sql: str, values: Sequence[Any], *, is_many: bool = False) -> Answer:
        if connection._only_reads is only_reads:
            note(Execution(sql, values, is_many, connection._begin is not None))
        return await execute(connection, sql, values, is_many=is_many)

    with patch.object(SqliteConnection, "execute", noted):
        yield
