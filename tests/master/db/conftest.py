"""A database with one table, and a connection of another program."""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from determined_master.db.engine import sqlite_url
from determined_master.db.session import Database
from determined_master.notifications import Notifications


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(sqlite_url(tmp_path / "master.sqlite"), Notifications())
    async with database.write() as session:
        await session.execute(text("CREATE TABLE kept (id INTEGER PRIMARY KEY)"))
        await session.execute(text("INSERT INTO kept VALUES (1), (2), (3)"))
    yield database
    await database.close()


@pytest.fixture
def other_program(tmp_path: Path, database: Database) -> Iterator[sqlite3.Connection]:
    """Yields a connection of another program."""
    with closing(sqlite3.connect(tmp_path / "master.sqlite", isolation_level=None)) as connection:
        yield connection
