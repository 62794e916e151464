"""The database is built by migrations alone; models and migrations agree; they go down and up again."""

from pathlib import Path

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from determined_master.db import models  # noqa: F401
from determined_master.db.base import Base
from determined_master.db.engine import make_migration_engine, sqlite_url
from determined_master.db.migrate import alembic_config, bring_up, downgrade, newest_revision, revision_of, upgrade


def test_models_and_migrations_agree(tmp_path: Path):
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
