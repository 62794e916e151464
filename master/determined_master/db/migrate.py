"""Upgrades a database to the newest revision with Alembic, from the checkout or the wheel.

Alembic stays out of the master's own process: it is needed once in many starts, and would keep 10 MiB for good.
"""

import importlib
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from sqlalchemy import Engine, inspect, text
from sqlalchemy.engine import Connection
from sqlalchemy.exc import DBAPIError

import determined_master
from determined_master.db.engine import make_migration_engine
from determined_master.db.sqlite import file as sqlite_file

if TYPE_CHECKING:
    from alembic.config import Config


class MigrationFailed(Exception):
    """The database could not be upgraded to the newest revision. The text is one line."""


def migrations_folder() -> Path:
    """Returns the migrations: ``_migrations`` of this package in a wheel, else the checkout's."""
    package = Path(determined_master.__file__).parent
    inside = package / "_migrations"
    return inside if inside.is_dir() else package.parents[1] / "migrations"


def known_revisions() -> list[str]:
    """Returns the revisions in order: they are numbered files, ``0001_….py``."""
    return sorted(path.name.split("_")[0] for path in (migrations_folder() / "versions").glob("[0-9]*_*.py"))


def newest_revision() -> str:
    return known_revisions()[-1]


def revision_of(engine: Engine) -> str | None:
    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
        return found


def bring_up(url: str, announce: Callable[[str], None] = lambda _text: None) -> None:
    """Upgrades the database at ``url`` to the newest revision, after a backup; does nothing where it is there already.

    ``announce`` is called with one line before an upgrade that may take long. The upgrade is one transaction: whatever
    interrupts it, the database stays as it was. Raises MigrationFailed.
    """
    try:
        file = sqlite_file.file_of(url)
        found = _revision(url) if file is None else sqlite_file.revision_of_file(file)
        _check_known(found, str(file or "the database"), file)
        if found == newest_revision():
            return
        if found is not None:
            announce(f"the database, from revision {found} to {newest_revision()}")
            if file is not None:
                sqlite_file.back_up(file, found)
    except sqlite_file.DatabaseUnusable as error:
        raise MigrationFailed(str(error)) from error
    # Not an argument, which every user of the machine can read: the URL may have a password.
    argv = [sys.executable, "-P", "-m", __name__]
    done = subprocess.run(argv, input=url, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()
        reason = signal.Signals(-done.returncode).name if done.returncode < 0 else (said[-1] if said else "no reason")
        raise MigrationFailed(f"{file or 'the database'} was not upgraded and is unchanged: {reason}")


def _revision(url: str) -> str | None:
    engine = make_migration_engine(url)
    try:
        return revision_of(engine)
    finally:
        engine.dispose()


def _check_known(revision: str | None, name: str, file: Path | None) -> None:
    """Raises MigrationFailed for a revision that this version does not have."""
    newest = newest_revision()
    if revision is None or revision in known_revisions():
        return
    restore = f"; {sqlite_file.restore_advice(file, newest)}" if file is not None else ""
    raise MigrationFailed(
        f"{name} is at revision {revision}, and this version of Detent supports revisions up to {newest}: install "
        f"the version that wrote it, or a newer one{restore}"
    )


def upgrade(engine: Engine, revision: str = "head") -> None:
    _command().upgrade(alembic_config(engine), revision)


def downgrade(engine: Engine, revision: str = "base") -> None:
    _command().downgrade(alembic_config(engine), revision)


def alembic_config(engine: Engine) -> "Config":
    config: Config = importlib.import_module("alembic.config").Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    config.attributes["engine"] = engine
    config.attributes["checked"] = _no_new_violations
    return config


@contextmanager
def _no_new_violations(connection: Connection) -> Iterator[None]:
    """Raises MigrationFailed, before the commit, if an upgrade leaves rows without parents."""
    if connection.dialect.name != "sqlite":
        yield
        return
    before = sqlite_file.foreign_key_violations(connection)
    yield
    tables = sorted({table for table, _parent in sqlite_file.foreign_key_violations(connection) - before})
    if tables:
        raise MigrationFailed(f"foreign keys would be violated in {', '.join(tables)}")


def _command() -> ModuleType:
    return importlib.import_module("alembic.command")


def _reason(error: Exception) -> str:
    """Returns one line: the error, and the migration in which it happened."""
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    frames = traceback.extract_tb(error.__traceback__)
    versions = str(migrations_folder() / "versions")
    places = [f" ({Path(f.filename).name}, line {f.lineno})" for f in frames if f.filename.startswith(versions)]
    return " ".join(f"{type(cause).__name__}: {cause}{places[-1] if places else ''}".split())


def main(url: str) -> int:
    engine = make_migration_engine(url)
    try:
        upgrade(engine)
    except Exception as error:
        print(_reason(error), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.stdin.read()))
