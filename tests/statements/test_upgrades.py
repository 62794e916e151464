"""Migrations of the database: one that leaves rows without parents is undone."""

from pathlib import Path

import pytest
from sqlalchemy import event
from tests.integration.test_upgrades import content, make_database

from determined_master.db.engine import make_migration_engine, sqlite_url
from determined_master.db.migrate import MigrationFailed, upgrade

pytestmark = [pytest.mark.sqlite, pytest.mark.budget(40, "upgrades databases")]


def test_a_migration_that_leaves_rows_without_parents_is_undone(tmp_path: Path):
    path = tmp_path / "master.sqlite"
    make_database(path, "0002")
    before = content(path)
    engine = make_migration_engine(sqlite_url(path))

    @event.listens_for(engine, "before_cursor_execute")
    def harm(connection, cursor, statement, *_: object) -> None:
        if "CREATE TABLE user_settings" in statement:
            cursor.execute("DELETE FROM users")

    with pytest.raises(MigrationFailed, match="foreign keys would be violated in experiments, projects, workspaces"):
        upgrade(engine)
    assert content(path) == before
