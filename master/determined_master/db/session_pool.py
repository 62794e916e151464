"""Sessions that have a connection from their beginning, and on SQLite stay open between uses.

To take a connection from SQLAlchemy's pool, to make a session and to close both takes longer than a short query.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession

from determined_master.db.sqlite.connection import SqliteConnection

S = TypeVar("S", bound=AsyncSession)
_CONNECTION = "connection"
"""Key of the connection in the ``info`` of a session."""
MAX_IDLE = 4


class SessionPool(Generic[S]):
    """Opens sessions of one engine. ``most_idle``: so many stay open while nobody uses them."""

    def __init__(self, engine: AsyncEngine, kind: type[S], *, most_idle: int) -> None:
        self._engine = engine
        self._kind = kind
        self._most_idle = most_idle
        self._idle: list[_Pooled[S]] = []

    @asynccontextmanager
    async def open(self, *, commits: bool = False, is_synced: bool = True) -> AsyncIterator[S]:
        pooled = self._idle.pop() if self._idle else await self._connect()
        pooled.session.info[_CONNECTION] = pooled.connection
        try:
            if not is_synced and pooled.driver is not None:
                pooled.driver.do_not_sync()
            yield pooled.session
            if commits:
                await pooled.commit()
            await pooled.end()
        except BaseException:
            await asyncio.shield(asyncio.create_task(pooled.drop()))
            raise
        if len(self._idle) < self._most_idle and not pooled.connection.invalidated:
            self._idle.append(pooled)
        else:
            await pooled.connection.close()

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().connection.close()

    async def _connect(self) -> "_Pooled[S]":
        connection = await self._engine.connect()
        driver = (await connection.get_raw_connection()).driver_connection
        session = self._kind(connection, expire_on_commit=False, autoflush=False)
        return _Pooled(session, connection, driver if isinstance(driver, SqliteConnection) else None)


@dataclass
class _Pooled(Generic[S]):
    session: S
    connection: AsyncConnection
    driver: SqliteConnection | None
    """None for PostgreSQL."""
    is_committing: bool = False

    async def commit(self) -> None:
        self.is_committing = True
        session = self.session
        if session.in_transaction() or session.new or session.dirty or session.deleted:
            await session.commit()
        # A statement that went to the connection began the transaction before the session did.
        if self.connection.in_transaction():
            await self.connection.commit()
        self.is_committing = False

    async def end(self) -> None:
        """Ends the transaction, and makes the session as if it were new."""
        if self.session.in_transaction():
            await self.session.close()
        else:
            self.session.expunge_all()
        self.session.info.clear()
        if self.connection.in_transaction():
            await self.connection.rollback()

    async def drop(self) -> None:
        """Ends the session after an error, and gives its connection back to the pool."""
        try:
            await self.session.close()
            if self.is_committing:
                # SQLAlchemy sends no rollback after a commit that failed, and the transaction would keep its locks.
                await self.connection.invalidate()
        finally:
            await self.connection.close()


async def connection_of(session: AsyncSession) -> AsyncConnection:
    """Returns the connection of a session, in the session's transaction and savepoint."""
    connection: AsyncConnection | None = session.info.get(_CONNECTION)
    if connection is None or session.in_nested_transaction():
        return await session.connection()  # sets the savepoint
    return connection
