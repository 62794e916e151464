"""Records what happens in a database meanwhile: loaded objects and statements."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, event

from determined_master.db.session import Database


@contextmanager
def loads(model: type[Any]) -> Iterator[list[Any]]:
    """Yields the list of objects of ``model`` that sessions load meanwhile."""
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
    """Yields the list of statements of read sessions meanwhile, those of the master's loops among them."""
    with _statements_of(database.read_engine.sync_engine) as statements:
        yield statements


@contextmanager
def writes(database: Database) -> Iterator[list[str]]:
    """Yields the list of statements of write sessions meanwhile, those of the master's loops among them."""
    with _statements_of(database.write_engine.sync_engine) as statements:
        yield statements


@contextmanager
def _statements_of(engine: Engine) -> Iterator[list[str]]:
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield statements
    finally:
        event.remove(engine, "before_cursor_execute", note)
