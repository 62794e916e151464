"""The connection of SQLite: one switch to its thread per statement, and transactions that begin with the first one."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import IntegrityError, OperationalError

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
async def switches(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each return of another thread to the event loop."""
    found: list[None] = []
    loop = asyncio.get_running_loop()
    original = loop.call_soon_threadsafe

    def counted(callback: Callable[..., object], *arguments: Any) -> object:
        found.append(None)
        return original(callback, *arguments)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    return found


async def insert(database: Database) -> None:
    async with database.write() as session:
        await session.execute(text("INSERT INTO kept VALUES (4)"))


async def test_a_statement_switches_to_the_thread_once(database: Database, switches: list[None]) -> None:
    async with database.read() as session:  # connects
        await session.execute(text("SELECT 1"))
    switches.clear()
    async with database.read() as session:
        assert list(await session.scalars(text("SELECT id FROM kept"))) == [1, 2, 3]
        await session.execute(text("SELECT 1"))
    assert len(switches) == 2
    switches.clear()
    async with database.write() as session:
        await session.execute(text("INSERT INTO kept VALUES (4)"))
    assert len(switches) == 2, "the statement and the commit"


async def test_a_reading_transaction_ends_with_its_session(database: Database) -> None:
    for count in (3, 4):
        async with database.read() as session:
            assert await session.scalar(text("SELECT count(*) FROM kept")) == count
        async with database.write() as session:
            await session.execute(text(f"INSERT INTO kept VALUES ({count + 1})"))


async def test_a_read_session_commits_nothing(database: Database) -> None:
    commits: list[object] = []
    event.listen(database.read_engine.sync_engine, "commit", commits.append)
    async with database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM kept")) == 3
    assert commits == []


async def test_a_reading_transaction_sees_one_frozen_view(database: Database) -> None:
    async with database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM kept")) == 3
        async with database.write() as writing:
            await writing.execute(text("INSERT INTO kept VALUES (4)"))
        assert await session.scalar(text("SELECT count(*) FROM kept")) == 3


async def test_a_transaction_that_cannot_begin_fails_its_first_statement(database: Database, tmp_path: Path) -> None:
    async with database.write() as session:
        await session.execute(text("PRAGMA busy_timeout=0"))
    with closing(sqlite3.connect(tmp_path / "master.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"):
            await insert(database)
        other.execute("ROLLBACK")
    await insert(database)
    async with database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM kept")) == 4


async def test_a_statement_that_fails_undoes_its_transaction(database: Database) -> None:
    async def write() -> None:
        async with database.write() as session:
            await session.execute(text("INSERT INTO kept VALUES (4)"))
            await session.execute(text("INSERT INTO kept VALUES (1)"))

    with pytest.raises(IntegrityError):
        await write()
    async with database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM kept")) == 3


async def test_a_number_of_changed_rows_is_returned(database: Database) -> None:
    async with database.write() as session:
        changed = await session.execute(text("UPDATE kept SET id = id + 10 WHERE id > 1 RETURNING id"))
        assert sorted(changed.scalars()) == [12, 13]
        connection = await session.connection()
        many = await connection.execute(text("DELETE FROM kept WHERE id = :id"), [{"id": 12}, {"id": 13}])
        assert many.rowcount == 2
