"""The SQLite connection: which statements switch to its thread, and transactions that begin with the first statement."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import IntegrityError, OperationalError

from determined_master.db.session import Database
from determined_master.db.sqlite.connection import SHORT_STEPS, SqliteConnection

pytestmark = pytest.mark.budget(15, "waits for the timeout of SQLite")


@pytest.fixture
async def switches(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Returns a list with one entry for each return of another thread to the event loop."""
    returns: list[None] = []
    loop = asyncio.get_running_loop()
    original = loop.call_soon_threadsafe

    def counted(callback: Callable[..., object], *arguments: Any) -> object:
        returns.append(None)
        return original(callback, *arguments)

    monkeypatch.setattr(loop, "call_soon_threadsafe", counted)
    return returns


async def insert(database: Database) -> None:
    await insert_row(database, 4)


async def insert_row(database: Database, number: int, *, is_synced: bool = True) -> None:
    async with database.write(is_synced=is_synced) as session:
        await session.execute(text(f"INSERT INTO kept VALUES ({number})"))


async def test_only_statements_that_may_be_slow_switch_to_the_thread(database: Database, switches: list[None]) -> None:
    async with database.read() as session:  # connects
        await session.execute(text("SELECT 1"))
    switches.clear()
    async with database.read() as session:
        assert list(await session.scalars(text("SELECT id FROM kept"))) == [1, 2, 3]
        await session.execute(text("SELECT 1"))
    assert len(switches) == 0
    async with database.write() as session:
        await session.execute(text("INSERT INTO kept VALUES (4)"))
        async with session.begin_nested():
            await session.execute(text("INSERT INTO kept VALUES (5)"))
            await session.execute(text("UPDATE kept SET id = 6 WHERE id = 5"))
        assert await session.scalar(text("SELECT max(id) FROM kept")) == 6
    assert len(switches) == 1, "the commit"
    switches.clear()
    async with database.write() as session:
        await session.execute(text("SELECT 1"))
        switches.clear()
        await session.execute(text("DELETE FROM kept WHERE id > 3"))
        await session.execute(text("UPDATE kept SET id = id WHERE id IN (SELECT id FROM kept)"))
        await (await session.connection()).execute(text("DELETE FROM kept WHERE id = :id"), [{"id": 8}, {"id": 9}])
        assert len(switches) == 3, "each of those may change many rows"


LONG = "WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 100000) SELECT count(*) FROM n"


async def test_a_long_query_continues_in_the_thread_and_begins_there_the_next_time(
    database: Database, switches: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted: list[sqlite3.OperationalError] = []
    original = SqliteConnection._execute_in_loop

    def watched(connection: SqliteConnection, *arguments: Any, **options: Any) -> object:
        try:
            return original(connection, *arguments, **options)
        except sqlite3.OperationalError as error:
            interrupted.append(error)
            raise

    monkeypatch.setattr(SqliteConnection, "_execute_in_loop", watched)
    async with database.read() as session:
        await session.execute(text("SELECT 1"))
        switches.clear()
        for count in (1, 2):
            assert await session.scalar(text(LONG)) == 100_000
            assert (len(switches), len(interrupted)) == (count, 1)


@pytest.mark.parametrize(("count", "expected"), [(2, 0), (8, 0), (9, 1)])
async def test_only_many_rows_switch_to_the_thread(
    database: Database, switches: list[None], count: int, expected: int
) -> None:
    async with database.write() as session:
        await session.execute(text("INSERT INTO kept VALUES (4)"))
        switches.clear()
        await session.execute(text("INSERT INTO kept VALUES (:id)"), [{"id": 10 + number} for number in range(count)])
        assert len(switches) == expected
        assert await session.scalar(text("SELECT count(*) FROM kept WHERE id >= 10")) == count


async def test_a_read_session_waits_for_locks_also_after_a_long_query(database: Database) -> None:
    for _ in range(2):  # the second one begins in the thread
        async with database.read() as session:
            assert await session.scalar(text(LONG)) == 100_000
            assert await session.scalar(text("PRAGMA busy_timeout")) == 10_000


async def test_a_long_query_leaves_its_transaction_as_it_was(database: Database) -> None:
    async with database.read() as reading:
        assert await reading.scalar(text("SELECT count(*) FROM kept")) == 3
        async with database.write() as writing:
            await writing.execute(text("INSERT INTO kept VALUES (4)"))
            assert await writing.scalar(text(LONG.replace("WITH", "SELECT (WITH") + ")")) == 100_000
            await writing.execute(text("INSERT INTO kept VALUES (5)"))
        assert await reading.scalar(text(LONG)) == 100_000
        assert await reading.scalar(text("SELECT count(*) FROM kept")) == 3
    async with database.read() as reading:
        assert await reading.scalar(text("SELECT count(*) FROM kept")) == 5


async def test_a_query_that_runs_often_is_not_taken_for_a_long_one(database: Database, switches: list[None]) -> None:
    """SQLite counts the instructions of a statement over all of its executions."""
    async with database.read() as session:
        await session.execute(text("SELECT 1"))
        switches.clear()
        for _ in range(2 * SHORT_STEPS):
            await session.execute(text("SELECT id FROM kept"))
    assert len(switches) == 0


async def test_many_short_statements_let_other_tasks_run(database: Database) -> None:
    turns = 0
    is_over = False

    async def switch() -> None:
        nonlocal turns
        while not is_over:
            turns += 1
            await asyncio.sleep(0)

    waiting = asyncio.create_task(switch())
    async with database.read() as session:
        for _ in range(500):
            await session.execute(text("SELECT id FROM kept"))
    is_over = True
    await waiting
    assert turns > 5


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
        await session.execute(text("SELECT 1"))
    with closing(sqlite3.connect(tmp_path / "master.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(OperationalError, match="locked"):
            await insert(database)
        other.execute("ROLLBACK")
    await insert(database)
    async with database.read() as session:
        assert await session.scalar(text("SELECT count(*) FROM kept")) == 4


async def test_a_statement_that_fails_rolls_back_its_transaction(database: Database) -> None:
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


def _written_by(database: Database) -> sqlite3.Connection:
    (pooled,) = database._writes._idle
    assert pooled.driver is not None
    return pooled.driver._open


def _settings(database: Database) -> tuple[int, int]:
    """Returns ``synchronous`` (2: a commit waits for the disk) and ``wal_autocheckpoint`` of the writing connection."""
    connection = _written_by(database)
    return tuple(connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("synchronous", "wal_autocheckpoint"))  # type: ignore[return-value]


async def test_a_commit_that_does_not_wait_for_the_disk_stays_in_the_loop(
    database: Database, switches: list[None]
) -> None:
    await insert(database)
    traced: list[str] = []
    _written_by(database).set_trace_callback(traced.append)
    switches.clear()
    async with database.write(is_synced=False) as session:
        await session.execute(text("INSERT INTO kept VALUES (5)"))
    assert len(switches) == 0
    assert traced == [
        "PRAGMA synchronous=NORMAL",
        "PRAGMA wal_autocheckpoint=0",
        "BEGIN IMMEDIATE",
        "INSERT INTO kept VALUES (5)",
        "COMMIT",
        "PRAGMA synchronous=FULL",
        "PRAGMA wal_autocheckpoint=1000",
    ]
    async with database.read() as session:
        assert await session.scalar(text("SELECT max(id) FROM kept")) == 5
    switches.clear()
    await insert_row(database, 6)
    assert len(switches) == 1, "the next one waits for the disk"


async def test_the_next_commit_waits_for_the_disk_after_one_that_failed(database: Database) -> None:
    await insert(database)
    assert _settings(database) == (2, 1000)
    with pytest.raises(IntegrityError):
        await insert_row(database, 4, is_synced=False)
    async with database.write(is_synced=False):
        pass  # no statement
    await insert_row(database, 7)
    assert _settings(database) == (2, 1000)
    async with database.read() as session:
        assert list(await session.scalars(text("SELECT id FROM kept"))) == [1, 2, 3, 4, 7]


async def test_a_statement_on_a_closed_connection_names_it_in_the_loop_and_in_the_thread(tmp_path: Path) -> None:
    """SQLAlchemy recognizes by these words that the connection is gone."""
    connection = await SqliteConnection("BEGIN").open(lambda: sqlite3.connect(tmp_path / "db", check_same_thread=False))
    connection.stop()
    for sql in ("SELECT 1", "VACUUM"):
        with pytest.raises(ValueError, match="no active connection"):
            await connection.execute(sql, ())
