"""Brings a database to the newest revision with Alembic, from the checkout or from the wheel; as a script too.

Alembic stays out of the master's own process: it is needed once in many starts, and would keep 10 MiB for good.
"""

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, inspect, text

import determined_master
from determined_master.db.engine import make_migration_engine


class MigrationFailed(Exception):
    """The database could not be brought to the newest revision."""


def migrations_folder() -> Path:
    """Inside the wheel ``_migrations`` lies in this package; in the checkout beside its roots."""
    package = Path(determined_master.__file__).parent
    inside = package / "_migrations"
    return inside if inside.is_dir() else package.parents[1] / "migrations"


def newest_revision() -> str:
    """Revisions are numbered files, ``0001_….py``; the largest number is the newest."""
    return max(path.name.split("_")[0] for path in (migrations_folder() / "versions").glob("[0-9]*_*.py"))


def revision_of(engine: Engine) -> str | None:
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
        return found


def bring_up(url: str) -> None:
    """Nothing where the database is at the newest revision. Raises MigrationFailed with what Alembic said."""
    engine = make_migration_engine(url)
    try:
        if revision_of(engine) == newest_revision():
            return
    finally:
        engine.dispose()
    done = subprocess.run([sys.executable, "-P", "-m", __name__, url], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MigrationFailed(f"the database could not be brought up to date:\n{done.stderr.strip()}")


def upgrade(engine: Engine, revision: str = "head") -> None:
    _command().upgrade(alembic_config(engine), revision)


def downgrade(engine: Engine, revision: str = "base") -> None:
    _command().downgrade(alembic_config(engine), revision)


def alembic_config(engine: Engine) -> Any:
    config = importlib.import_module("alembic.config").Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["engine"] = engine
    return config


def _command() -> Any:
    return importlib.import_module("alembic.command")


if __name__ == "__main__":
    upgrade(make_migration_engine(sys.argv[1]))
