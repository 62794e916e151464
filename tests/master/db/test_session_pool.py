"""Pooled sessions: transactions of the session and of its connection, errors, and other programs."""

import asyncio
import sqlite3
from contextlib import AsyncExitStack

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, bindparam, event, func, insert, select
from sqlalchemy.exc import IntegrityError, OperationalError

from determined_master.db.session import Database, WriteSession, after_commit, notify
from determined_master.db.session_pool import MAX_IDLE
from determined_master.db.sqlite.connection import SqliteConnection
from determined_master.db.statements.prepared import Prepared
from determined_master.db.statements.row_changes import insert_rows

KEPT = Table("kept", MetaData(), Column("id", Integer, primary_key=True))
_COUNT = Prepared(select(func.count()).select_from(KEPT))
_HIGHER = Prepared(select(KEPT.c.id).where(KEPT.c.id > bindparam("than")).order_by(KEPT.c.id))


async def add(session: WriteSession, *ids: int) -> None:
    await insert_rows(session, KEPT, [{"id": number} for number in ids])


async def add_alone(database: Database, number: int) -> None:
    async with database.write() as session:
        await add(session, number)


async def test_sessions_take_their_connections_from_the_pool_once(database: Database) -> None:
    checkouts: list[object] = []
    for engine in (database.read_engine, database.write_engine):
        event.listen(engine.sync_engine, "checkout", lambda *_: checkouts.append(None))
    for number in range(4, 14):
        async with database.write() as writing:
            await add(writing, number)
        async with database.read() as reading:
            assert await _HIGHER.scalars(reading, than=number - 1) == [number]
    assert len(checkouts) <= 1, "that of the first read session"


async def test_more_sessions_than_the_pool_keeps_work_at_once(database: Database) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(MAX_IDLE + 3):
            assert await _COUNT.first(await stack.enter_async_context(database.read())) == 3
    pool = database.read_engine.sync_engine.pool
    assert pool.checkedout() == MAX_IDLE  # type: ignore[attr-defined]


async def test_prepared_and_other_statements_are_one_transaction(
    database: Database, other_program: sqlite3.Connection
) -> None:
    async with database.write() as session:
        await add(session, 4)
        await session.execute(insert(KEPT), [{"id": 5}])
        await add(session, 6)
        assert await session.scalar(select(func.count()).select_from(KEPT)) == 6
        assert other_program.execute("SELECT count(*) FROM kept").fetchone() == (3,)
    assert other_program.execute("SELECT count(*) FROM kept").fetchone() == (6,)


async def test_all_queries_of_a_session_see_one_view(database: Database) -> None:
    async with database.read() as session:
        assert await _COUNT.first(session) == 3
        async with database.write() as writing:
            await add(writing, 4)
        assert await session.scalar(select(func.count()).select_from(KEPT)) == 3
        assert await _COUNT.first(session) == 3
    async with database.read() as session:
        assert await _COUNT.first(session) == 4


@pytest.mark.parametrize("is_mixed", [False, True])
async def test_an_error_rolls_back_the_whole_transaction(database: Database, *, is_mixed: bool) -> None:
    done: list[str] = []

    async def write() -> None:
        async with database.write() as session:
            after_commit(session, lambda: done.append("called"))
            notify(session, "topic")
            await add(session, 4)
            if is_mixed:
                await session.execute(insert(KEPT), [{"id": 5}])
            await add(session, 1)

    with pytest.raises(IntegrityError):
        await write()
    assert done == []
    async with database.write() as session:
        after_commit(session, lambda: done.append("called"))
        await add(session, 7)
    assert done == ["called"]
    async with database.read() as session:
        assert await _HIGHER.scalars(session, than=3) == [7]


async def test_a_savepoint_rolls_back_the_statements_after_it(database: Database) -> None:
    async def fail(session: WriteSession) -> None:
        async with session.begin_nested():
            await add(session, 5)
            await add(session, 1)

    async with database.write() as session:
        await add(session, 4)
        with pytest.raises(IntegrityError):
            await fail(session)
        await add(session, 6)
    async with database.read() as session:
        assert await _HIGHER.scalars(session, than=3) == [4, 6]


async def test_a_session_that_did_nothing_takes_no_lock(database: Database, other_program: sqlite3.Connection) -> None:
    async with database.write():
        other_program.execute("BEGIN IMMEDIATE")
        other_program.execute("ROLLBACK")


async def test_the_loop_goes_on_while_another_program_holds_the_lock(
    database: Database, other_program: sqlite3.Connection
) -> None:
    other_program.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(add_alone(database, 4))
    async with database.read() as session:
        assert await _COUNT.first(session) == 3
    assert not writing.done()
    other_program.execute("ROLLBACK")
    await writing
    assert other_program.execute("SELECT count(*) FROM kept").fetchone() == (4,)


async def test_a_write_that_is_cancelled_while_it_waits_for_the_lock_stores_nothing(
    database: Database, other_program: sqlite3.Connection
) -> None:
    other_program.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(add_alone(database, 4))
    await asyncio.sleep(0)
    assert database.write_lock.locked()
    writing.cancel()
    other_program.execute("ROLLBACK")
    with pytest.raises(asyncio.CancelledError):
        await writing
    async with database.write() as session:
        assert await _COUNT.first(session) == 3
        await add(session, 5)
    assert other_program.execute("SELECT max(id) FROM kept").fetchone() == (5,)


async def test_a_commit_that_fails_leaves_no_lock_behind(
    database: Database, other_program: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_connection: SqliteConnection) -> None:
        raise sqlite3.OperationalError("disk I/O error (a test's)")

    async def write(*, begins_by_session: bool) -> None:
        async with database.write() as session:
            if begins_by_session:
                await session.execute(insert(KEPT), [{"id": 5}])
            await add(session, 6)

    for begins_by_session in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(SqliteConnection, "commit", fail)
            with pytest.raises(OperationalError):
                await write(begins_by_session=begins_by_session)
        other_program.execute("PRAGMA busy_timeout = 0")
        other_program.execute("BEGIN IMMEDIATE")
        assert other_program.execute("SELECT count(*) FROM kept").fetchone() == (3,)
        other_program.execute("ROLLBACK")
    await add_alone(database, 7)
