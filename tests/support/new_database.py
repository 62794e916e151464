"""A database of SQLite with the newest tables and no rows. Migrating takes most of a second, in a process of its own."""

import functools
import tempfile
from pathlib import Path

from determined_master.db.engine import sqlite_url
from determined_master.db.migrate import bring_up


@functools.cache
def new_database() -> bytes:
    """Returns the content of the file. ``test_up`` and ``test_upgrades`` cover masters that start without one."""
    with tempfile.TemporaryDirectory() as folder:
        created = Path(folder) / "master.sqlite"
        bring_up(sqlite_url(created))
        return created.read_bytes()


def put_database(data: Path) -> None:
    """Creates a master's data folder with a new database."""
    data.mkdir(mode=0o700, parents=True)
    (data / "master.sqlite").write_bytes(new_database())
