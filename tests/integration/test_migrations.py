"""Migrations: they agree with the models, go down and up again, and convert earlier rows."""

import uuid
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text
from tests.support.postgresql import Server

from determined_master.db import models  # noqa: F401
from determined_master.db.engine import make_migration_engine, sqlite_url
from determined_master.db.migrate import alembic_config, bring_up, downgrade, newest_revision, revision_of, upgrade
from determined_master.db.models.base import Base


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Returns the URL of an empty database."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "db")
    server: Server = request.getfixturevalue("postgresql")
    return server.create(f"empty_{uuid.uuid4().hex}")


def test_the_models_equal_the_migrated_database(url: str):
    engine = make_migration_engine(url)
    upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": False})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_whole_numbers_have_64_bits_on_postgresql(postgresql: Server):
    engine = make_migration_engine(postgresql.create(f"empty_{uuid.uuid4().hex}"))
    upgrade(engine)
    narrow = "SELECT table_name FROM information_schema.columns WHERE data_type = 'integer' AND table_schema = 'public'"
    with engine.connect() as connection:
        assert connection.execute(text(narrow)).all() == []
    engine.dispose()


def test_migrations_go_up_down_and_up_again(url: str):
    engine = make_migration_engine(url)
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


def test_earlier_experiments_are_marked_for_the_index_and_their_labels_are_converted(tmp_path: Path):
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


def test_earlier_trials_and_experiments_get_tasks_and_jobs(tmp_path: Path):
    engine = make_migration_engine(sqlite_url(tmp_path / "db"))
    upgrade(engine, "0009")
    config = '{"resources": {"weight": 2.5}}'
    with engine.begin() as connection:
        for table, values in (
            ("users", {"id": 3, "username": "u", "display_name": "", "password_hash": "", "modified_at": 0}),
            ("workspaces", {"id": 1, "name": "w", "user_id": 3}),
            ("projects", {"id": 1, "workspace_id": 1, "name": "p", "key": "", "description": "", "user_id": 3}),
            ("experiments", _experiment(1, config=config, priority=7, pool="default")),
            ("experiments", _experiment(2, config="{not JSON", priority=42, pool="other")),
            ("trials", {"id": 1, "experiment_id": 1, "task_id": "1.a", "request_id": "a", "start_time": 11}),
            ("trials", {"id": 2, "experiment_id": 2, "task_id": "2.a", "request_id": "a", "start_time": 12}),
            ("allocations", {"id": "1.a.1", "task_id": "1.a", "user_id": 3, "spec": "{}", "state": "RUNNING"}),
            ("allocations", {"id": "gone.1", "task_id": "gone", "user_id": 3, "priority": 5, "spec": "{}"}),
            ("containers", {"id": "c", "allocation_id": "1.a.1", "slot_ids": "[]"}),
        ):
            insert_whole(connection, table, values)
    upgrade(engine)
    with engine.connect() as connection:
        jobs = connection.execute(text("SELECT id, pool, priority, weight, position FROM jobs ORDER BY id")).all()
        columns = "id, kind, job_id, user_id, experiment_id, token_scope, created_at, state"
        tasks = connection.execute(text(f"SELECT {columns} FROM tasks ORDER BY id")).all()
        containers = connection.execute(
            text("SELECT count(*) FROM containers JOIN allocations a ON a.id = allocation_id")
        )
        assert containers.scalar_one() == 1
    assert [tuple(row) for row in jobs] == [
        ("gone", "0", 5, 1.0, 0),
        ("job-1", "default", 7, 2.5, 21),
        ("job-2", "other", 42, 1.0, 22),
    ]
    assert [tuple(row) for row in tasks] == [
        ("1.a", "TRIAL", "job-1", 3, 1, "trial", 11, None),
        ("2.a", "TRIAL", "job-2", 3, 2, "trial", 12, None),
        ("gone", "TRIAL", "gone", 3, None, "trial", 0, None),
    ]
    engine.dispose()


def test_a_downgrade_keeps_trials_and_drops_the_attempts_of_commands(tmp_path: Path):
    engine = make_migration_engine(sqlite_url(tmp_path / "db"))
    upgrade(engine)
    job = {"id": "job-1", "pool": "default", "priority": 7, "weight": 1, "position": 0}
    task = {"job_id": "job-1", "user_id": 3, "token_scope": "trial", "created_at": 0}
    with engine.begin() as connection:
        for table, values in (
            ("users", {"id": 3, "username": "u", "display_name": "", "password_hash": "", "modified_at": 0}),
            ("workspaces", {"id": 1, "name": "w", "user_id": 3}),
            ("projects", {"id": 1, "workspace_id": 1, "name": "p", "key": "", "description": "", "user_id": 3}),
            ("jobs", job),
            ("experiments", _experiment(1, config="{}")),
            ("tasks", {**task, "id": "1.a", "kind": "TRIAL"}),
            ("tasks", {**task, "id": "c", "kind": "COMMAND", "state": "ACTIVE"}),
            ("allocations", {"id": "1.a.1", "task_id": "1.a", "spec": "{}"}),
            ("allocations", {"id": "c.1", "task_id": "c", "spec": "{}"}),
            ("containers", {"id": "x", "allocation_id": "c.1", "slot_ids": "[]"}),
        ):
            insert_whole(connection, table, values)
    downgrade(engine, "0009")
    with engine.connect() as connection:
        assert connection.execute(text("SELECT priority FROM experiments")).scalar_one() == 7
        assert [row[0] for row in connection.execute(text("SELECT id FROM allocations"))] == ["1.a.1"]
        assert connection.execute(text("SELECT count(*) FROM containers")).scalar_one() == 0
    engine.dispose()


def _experiment(number: int, **values: object) -> dict[str, object]:
    own = {"id": number, "job_id": f"job-{number}", "user_id": 3, "project_id": 1, "start_time": 20 + number}
    return {**own, "state": "COMPLETED", "labels": "[]", **values}


def insert_whole(connection: Connection, table: str, values: dict[str, object]) -> None:
    """Inserts a row. Required columns without a value and a default get zero."""
    for column in inspect(connection).get_columns(table):
        if not column["nullable"] and column["default"] is None:
            values.setdefault(column["name"], 0)
    names = ", ".join(f'"{name}"' for name in values)
    connection.execute(
        text(f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{name}' for name in values)})"), values
    )
