"""The writer of reports: a quick transaction bypasses SQLAlchemy."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import event
from tests.master.db.test_group_commit import Children, numbers

from determined_master.db.group_commit import GroupWriter
from determined_master.db.session import Database


@contextmanager
def executed(database: Database) -> Iterator[list[str]]:
    """Yields the statements that SQLAlchemy executes for the writer."""
    statements: list[str] = []

    def record(_connection: Any, _cursor: Any, statement: str, *_others: Any) -> None:
        statements.append(statement)

    event.listen(database.group_engine, "before_cursor_execute", record)
    try:
        yield statements
    finally:
        event.remove(database.group_engine, "before_cursor_execute", record)


async def test_a_quick_report_goes_to_the_driver(database: Database, writer: GroupWriter) -> None:
    store = Children()
    assert await writer.write(store, (1, 1)) == 1
    with executed(database) as statements:
        assert await writer.write(store, (2, 1)) == 2
    assert (statements, await numbers(database), store.undone) == ([], [1, 2], 0)
