"""Sessions of SQLite on connections that stay open between them.

To take a connection from a pool, to begin a transaction and to end it takes SQLAlchemy longer than a short query takes
SQLite. A session that executes only prepared statements (db/prepared.py) does none of it: its driver begins and ends
the transaction.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
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
        self._kept: list[tuple[AsyncConnection, SqliteConnection]] = []

    @asynccontextmanager
    async def open(self, *, commits: bool = False) -> AsyncIterator[S]:
        connection, driver = self._kept.pop() if self._kept else await self._connect()
        session = self._kind(connection, expire_on_commit=False, autoflush=False)
        session.info[DRIVER] = driver
        try:
            yield session
            if commits:
                await _commit(session, connection, driver)
            await _end(session, connection, driver)
        except BaseException:
            await asyncio.shield(asyncio.create_task(_drop(session, connection, driver)))
            raise
        if len(self._kept) < MAX_KEPT and not connection.invalidated:
            self._kept.append((connection, driver))
        else:
            await connection.close()

    async def close(self) -> None:
        while self._kept:
            await self._kept.pop()[0].close()

    async def _connect(self) -> tuple[AsyncConnection, SqliteConnection]:
        connection = await self._engine.connect()
        driver = (await connection.get_raw_connection()).driver_connection
        assert isinstance(driver, SqliteConnection)
        return connection, driver


async def raise_as_sqlalchemy(
    connection: AsyncConnection, driver: SqliteConnection, sql: str, error: sqlite3.Error
) -> NoReturn:
    """Raises ``error`` as SQLAlchemy does, which knows its class and asks the handlers of the engine."""
    driver.fail_next(error)
    await connection.exec_driver_sql(sql)
    raise error


async def _commit(session: AsyncSession, connection: AsyncConnection, driver: SqliteConnection) -> None:
    if connection.in_transaction() or session.new or session.dirty or session.deleted:
        await session.commit()
    if driver.in_transaction:
        try:
            await driver.commit()
        except sqlite3.Error as error:
            await raise_as_sqlalchemy(connection, driver, "COMMIT", error)


async def _end(session: AsyncSession, connection: AsyncConnection, driver: SqliteConnection) -> None:
    if connection.in_transaction():
        await session.close()
    else:
        session.sync_session.close()
    await driver.rollback()


async def _drop(session: AsyncSession, connection: AsyncConnection, driver: SqliteConnection) -> None:
    """Ends a session after an error, and gives its connection back to the pool."""
    try:
        await session.close()
        if not connection.invalidated:
            await driver.rollback()
    finally:
        await connection.close()
