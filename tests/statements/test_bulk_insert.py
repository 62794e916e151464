"""Bulk inserts into SQLite take few statements."""

from pathlib import Path

import pytest
from sqlalchemy import event
from tests.integration.test_bulk_insert import LINES, NOW
from tests.support.new_database import new_database

from determined_master.db.engine import make_group_engine, sqlite_url
from determined_master.db.statements.bulk_insert import copy_rows

pytestmark = [pytest.mark.sqlite, pytest.mark.budget(15, "inserts very many rows")]


@pytest.mark.parametrize(("count", "statements"), [(1, 1), (15, 1), (16, 1), (17, 2), (256, 1), (300, 4)])
def test_rows_are_inserted_by_few_statements(tmp_path: Path, count: int, statements: int):
    (tmp_path / "db").write_bytes(new_database())
    engine = make_group_engine(sqlite_url(tmp_path / "db"))
    executed: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda _c, _cursor, text, *_: executed.append(text))
    rows = [{"task_id": "t", "timestamp": NOW, "log": f"line {each}", "is_error": False} for each in range(count)]
    with engine.begin() as connection:
        copy_rows(connection, LINES, rows)
    engine.dispose()
    assert len([each for each in executed if each.startswith("INSERT")]) == statements
