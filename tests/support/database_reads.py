"""Records the objects and statements that a database loads and executes inside a block."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest.mock import patch

from sqlalchemy import Engine, event

from determined_master.db.session import Database
from determined_master.db.sqlite.connection import Answer, SqliteConnection


@contextmanager
def loads(model: type[Any]) -> Iterator[list[Any]]:
    """Yields the list of objects of ``model`` that sessions load inside the block."""
    loaded: list[Any] = []

    def note(target: Any, _context: Any) -> None:
        loaded.append(target)

    event.listen(model, "load", note)
    try:
        yield loaded
    finally:
        event.remove(model, "load", note)


@contextmanager
def reads(database: Database) -> Iterator[list[str]]:
    """Yields the list of statements of read sessions inside the block, those of the master's loops included."""
    statements: list[str] = []
    with executions(database, lambda execution: statements.append(execution.sql), only_reads=True):
        yield statements


@contextmanager
def writes(database: Database) -> Iterator[list[str]]:
    """Yields the list of statements of write sessions inside the block, those of the master's loops included."""
    statements: list[str] = []
    with executions(database, lambda execution: statements.append(execution.sql), only_reads=False):
        yield statements


class Execution(NamedTuple):
    """A statement that a connection executes."""

    sql: str
    values: Sequence[Any]
    is_many: bool
    begins: bool
    """True for the first statement of a transaction."""


Note = Callable[[Execution], object]


@contextmanager
def executions(database: Database, note: Note, *, only_reads: bool) -> Iterator[None]:
    """Calls ``note`` before each statement of read sessions, or of write sessions."""
    if database.is_sqlite:
        noting = _on_sqlite(note, only_reads=only_reads)
    else:
        noting = _on_postgresql((database.read_engine if only_reads else database.write_engine).sync_engine, note)
    with noting:
        yield


@contextmanager
def transactions(database: Database) -> Iterator[list[list[str]]]:
    """Yields the statements of each write transaction meanwhile; there is one at a time."""
    recorded: list[list[str]] = []

    def note(each: Execution) -> None:
        if each.begins:
            recorded.append([])
        recorded[-1].append(each.sql)

    with executions(database, note, only_reads=False):
        yield recorded


@contextmanager
def _on_sqlite(note: Note, *, only_reads: bool) -> Iterator[None]:
    execute = SqliteConnection.execute

    async def noted(connection: SqliteConnection, sql: str, values: Sequence[Any], *, is_many: bool = False) -> Answer:
        if connection.only_reads is only_reads:
            note(Execution(sql, values, is_many, not connection.in_transaction))
        return await execute(connection, sql, values, is_many=is_many)

    with patch.object(SqliteConnection, "execute", noted):
        yield


@contextmanager
def _on_postgresql(engine: Engine, note: Note) -> Iterator[None]:
    begun: list[object] = []

    def noted(_connection: object, _cursor: object, sql: str, values: Any, _context: object, is_many: bool) -> None:
        begins = bool(begun)
        begun.clear()
        note(Execution(sql, values, is_many, begins))

    add = begun.append  # one object: attribute access creates a new method object each time
    event.listen(engine, "begin", add)
    event.listen(engine, "before_cursor_execute", noted)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", noted)
        event.remove(engine, "begin", add)
