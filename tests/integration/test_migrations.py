"""The database is built by migrations alone; models and migrations agree; they go down and up again."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from determined_master.db import models  # noqa: F401
from determined_master.db.base import Base
from determined_master.db.engine import make_migration_engine, sqlite_url
from determined_master.db.migrate import alembic_config, bring_up, downgrade, newest_revision, revision_of, upgrade


def test_the_models_equal_the_migrated_database(tmp_path: Path):
    engine = make_migration_engine(sqlite_url(tmp_path / "db"))
    upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_up_down_and_up_again(tmp_path: Path):
    engine = make_migration_engine(sqlite_url(tmp_path / "db"))
    upgrade(engine)
    before = sorted(inspect(engine).get_table_names())
    downgrade(engine)
    assert inspect(engine).get_table_names() == ["alembic_version"]
    upgrade(engine)
    assert sorted(inspect(engine).get_table_names()) == before
    engine.dispose()


def test_the_newest_revision_is_known_without_alembic(tmp_path: Path):
    engine = make_migration_engine(sqlite_url(tmp_path / "db"))
    assert ScriptDirectory.from_config(alembic_config(engine)).get_current_head() == newest_revision()
    assert revision_of(engine) is None
    bring_up(sqlite_url(tmp_path / "db"))
    assert revision_of(engine) == newest_revision()
    engine.dispose()


def test_what_was_there_before_lists_is_marked_and_its_labels_are_found(tmp_path: Path):
    engine = make_migration_engine(sqlite_url(tmp_path / "db"))
    upgrade(engine, "0002")
    with engine.begin() as connection:
        for table, values in (
            ("users", {"id": 1, "username": "u", "display_name": "", "password_hash": "", "modified_at": 0}),
            ("workspaces", {"id": 1, "name": "w", "user_id": 1}),
            ("projects", {"id": 1, "workspace_id": 1, "name": "p", "key": "", "description": "", "user_id": 1}),
            ("experiments", {"id": 1, "job_id": "1", "labels": '["a", "b"]', "state": "COMPLETED"}),
            ("experiments", {"id": 2, "job_id": "2", "labels": '["a"]', "state": "DELETED"}),
            ("trials", {"id": 1, "experiment_id": 1, "request_id": "r", "task_id": "t", "state": "COMPLETED"}),
        ):
            insert_whole(connection, table, values)
    upgrade(engine)
    with engine.connect() as connection:
        labels = connection.execute(text("SELECT label, experiment_id FROM experiment_labels ORDER BY label")).all()
        marks = connection.execute(
            text("SELECT values_stale FROM trials UNION ALL SELECT values_stale FROM experiments")
        ).all()
    assert [tuple(row) for row in labels] == [("a", 1), ("b", 1)]
    assert [row[0] for row in marks] == [1, 1, 1]
    engine.dispose()


def insert_whole(connection: Connection, table: str, values: dict[str, object]) -> None:
    """Zeroes for what is not named and may not be missing."""
    for column in inspect(connection).get_columns(table):
        if not column["nullable"] and column["default"] is None:
            values.setdefault(column["name"], 0)
    names = ", ".join(f'"{name}"' for name in values)
    connection.execute(
        text(f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{name}' for name in values)})"), values
    )
