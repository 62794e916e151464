"""Sessions of SQLite that stay open, with their connections.

To take a connection from a pool, to begin a transaction and to end it takes SQLAlchemy longer than a short query takes
SQLite. A session that executes only prepared statements (db/prepared.py) does none of it: its driver begins and ends
the transaction.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, NoReturn, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from determined_master.db.sqlite_connection import SqliteConnection

S = TypeVar("S", bound=AsyncSession)
DRIVER = "driver"
"""Key of the driver in the ``info`` of a session."""
MAX_KEPT = 4


class KeptSessions(Generic[S]):
    """Opens sessions of one engine. SQLAlchemy may execute other statements in them, in the same transaction."""

    def __init__(self, engine: AsyncEngine, kind: type[S]) -> None:
        self._engine = engine
        self._kind = kind
        self._kept: list[_Kept[S]] = []

    @asynccontextmanager
    async def open(self, *, commits: bool = False, is_synced: bool = True) -> AsyncIterator[S]:
        kept = self._kept.pop() if self._kept else await self._connect()
        session = kept.session
        session.info[DRIVER] = kept.driver
        try:
            if not is_synced:
                kept.driver.do_not_sync()
            yield session
            if commits:
                await kept.commit()
            await kept.end()
        except BaseException:
            await asyncio.shield(asyncio.create_task(kept.drop()))
            raise
        if len(self._kept) < MAX_KEPT and not kept.connection.invalidated:
            self._kept.append(kept)
        else:
            await kept.connection.close()

    async def close(self) -> None:
        while self._kept:
            await self._kept.pop().connection.close()

    async def _connect(self) -> "_Kept[S]":
        connection = await self._engine.connect()
        driver = (await connection.get_raw_connection()).driver_connection
        assert isinstance(driver, SqliteConnection)
        return _Kept(self._kind(connection, expire_on_commit=False, autoflush=False), connection, driver)


@dataclass
class _Kept(Generic[S]):
    session: S
    connection: AsyncConnection
    driver: SqliteConnection

    async def commit(self) -> None:
        session, driver = self.session, self.driver
        if self.connection.in_transaction() or session.new or session.dirty or session.deleted:
            await session.commit()
        if driver.in_transaction:
            try:
                await driver.commit()
            except sqlite3.Error as error:
                await raise_as_sqlalchemy(self.connection, driver, "COMMIT", error)

    async def end(self) -> None:
        """Ends the transaction, and makes the session as if it were new."""
        sync_session = self.session.sync_session
        if self.connection.in_transaction():
            await self.session.close()
        elif sync_session.in_transaction() or len(sync_session.identity_map) or sync_session.new:
            sync_session.close()
        self.session.info.clear()
        await self.driver.rollback()

    async def drop(self) -> None:
        """Ends the session after an error, and gives its connection back to the pool."""
        try:
            await self.session.close()
            if not self.connection.invalidated:
                await self.driver.rollback()
        finally:
            await self.connection.close()


async def raise_as_sqlalchemy(
    connection: AsyncConnection, driver: SqliteConnection, sql: str, error: sqlite3.Error
) -> NoReturn:
    """Raises ``error`` as SQLAlchemy does, which knows its class and asks the handlers of the engine."""
    driver.fail_next(error)
    await connection.exec_driver_sql(sql)
    raise error
