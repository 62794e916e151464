"""The transaction of a cancelled write ends at once, even if other objects still refer to it."""

import asyncio
import gc
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event, text
from sqlalchemy.engine.interfaces import DBAPIConnection

from determined_master.db.engine import sqlite_url
from determined_master.db.session import Database
from determined_master.notifications import Notifications


@pytest.fixture
def _no_garbage_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("_no_garbage_collection")
async def test_a_write_that_is_cancelled_within_a_statement_gives_the_lock_back(tmp_path: Path) -> None:
    path = tmp_path / "master.sqlite"
    database = Database(sqlite_url(path), Notifications())
    loop = asyncio.get_running_loop()
    running, may_end = asyncio.Event(), threading.Event()

    def block(row: int) -> int:
        loop.call_soon_threadsafe(running.set)
        may_end.wait(60)
        return row

    @event.listens_for(database.write_engine.sync_engine, "connect")
    def _add_function(connection: DBAPIConnection, _record: object) -> None:
        connection.create_function("block", 1, block)

    async with database.write() as session:
        await session.execute(text("CREATE TABLE kept (id INTEGER)"))

    async def write() -> None:
        async with database.write() as session:
            await session.execute(text("INSERT INTO kept VALUES (1)"))
            await session.execute(text("INSERT INTO kept SELECT block(column1) FROM (VALUES (1), (2))"))

    task = asyncio.create_task(write())
    await running.wait()
    task.cancel()
    loop.call_soon(may_end.set)
    with pytest.raises(asyncio.CancelledError) as cancelled:
        await task
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert other.execute("SELECT count(*) FROM kept").fetchone() == (0,)
        other.execute("ROLLBACK")
    assert cancelled.value.__traceback__ is not None  # its frames refer to the cursor
    await database.close()
