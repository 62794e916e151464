"""Database sessions. Read sessions see a frozen view; one write session at a time; notifications follow the commit."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from sqlalchemy import Engine
from sqlalchemy.ext.asyncio import AsyncEngine, AsyncSession

from determined_master.db.engine import (
    OnDamage,
    OnUnwritable,
    make_group_engine,
    make_read_engine,
    make_write_engine,
    report_failures,
)
from determined_master.db.lease import Lease
from determined_master.db.queue_changes import Kind, QueueChanges, watch
from determined_master.db.session_pool import MAX_IDLE, SessionPool
from determined_master.db.statements.nul import keep_symbol
from determined_master.notifications import Notifications
from determined_master.settings.database_url import is_sqlite


class ReadSession(AsyncSession):
    """A session for queries. A function that takes one writes nothing; its transaction sees one frozen view."""


class WriteSession(ReadSession):
    """The one session that may write; a function that takes it changes rows, and its caller commits."""


class Database:
    """Engines and sessions of one master; created once, passed down.

    Changes of states hold ``write_lock``, on every database: there is one of them at a time. The group-commit writer
    holds ``group_lock``, which is the same lock on SQLite: that has one writer, and waiting for a lock in the process
    is fair and cheap, unlike waiting for SQLite's. On PostgreSQL reports do not wait for changes of states.
    """

    def __init__(
        self,
        url: str,
        notifications: Notifications,
        on_unwritable: OnUnwritable = lambda _text, _is_full: None,
        lease: Lease | None = None,
        on_damage: OnDamage = lambda _error: None,
    ) -> None:
        self.url = url
        self.notifications = notifications
        self.read_engine: AsyncEngine = make_read_engine(url)
        self.write_engine: AsyncEngine = make_write_engine(url)
        self.group_engine: Engine = make_group_engine(url)
        self.queue_changes = QueueChanges()
        """What commits have changed for the scheduler since it last took it."""
        self._scheduler_tables: set[str] = set()
        """Tables that the present transaction changes and that the scheduler's state is made from."""
        watch(self.write_engine.sync_engine, self._scheduler_tables.add)
        for engine in (self.read_engine.sync_engine, self.write_engine.sync_engine, self.group_engine):
            report_failures(engine, on_unwritable, on_damage)
            keep_symbol(engine)
        if lease is not None:
            lease.guard(self.write_engine.sync_engine)
            lease.guard(self.group_engine)
        self.write_lock = asyncio.Lock()
        self.is_sqlite = is_sqlite(url)
        self.group_lock = self.write_lock if self.is_sqlite else asyncio.Lock()
        most_idle = MAX_IDLE if self.is_sqlite else 0  # those of PostgreSQL stay in SQLAlchemy's pool, which pings them
        self._reads = SessionPool(self.read_engine, ReadSession, most_idle=most_idle)
        self._writes = SessionPool(self.write_engine, WriteSession, most_idle=most_idle)

    def read(self) -> AbstractAsyncContextManager[ReadSession]:
        # The first statement begins the transaction, and the end of the session ends it: there is nothing to commit.
        return self._reads.open()

    @asynccontextmanager
    async def write(self, *, is_synced: bool = True) -> AsyncIterator[WriteSession]:
        """Commits at the end. ``is_synced`` False is for changes that would be made again after a power failure:
        SQLite's commit of them does not wait for the disk."""
        async with self.write_lock:
            self._scheduler_tables.clear()
            async with self._writes.open(commits=True, is_synced=is_synced) as session:
                yield session
                topics, callbacks, changes = topics_of(session), _callbacks_of(session), _changes_of(session)
            changes.check(self._scheduler_tables)
        self.queue_changes.add(changes)
        for callback in callbacks:
            callback()
        self.notifications.publish(topics)

    async def close(self) -> None:
        await self._reads.close()
        await self._writes.close()
        await self.read_engine.dispose()
        await self.write_engine.dispose()
        self.group_engine.dispose()


def notify(session: WriteSession, *topics: str) -> None:
    """Publishes ``topics`` once this session has committed."""
    topics_of(session).update(topics)


def note(session: WriteSession, kind: Kind, keys: Iterable[str]) -> None:
    """Says which rows the session changes of those that the scheduler's state is made from (see
    ``queue_changes.SCHEDULER_COLUMNS``)."""
    changes = _changes_of(session)
    changes.noted.add(kind)
    changes.of(kind).update(keys)


def after_commit(session: WriteSession, callback: Callable[[], None]) -> None:
    """Calls ``callback`` once this session has committed, before its notifications are published. It must not fail."""
    _callbacks_of(session).append(callback)


def topics_of(session: ReadSession) -> set[str]:
    topics: set[str] = session.info.setdefault("topics", set())
    return topics


def _changes_of(session: ReadSession) -> QueueChanges:
    changes: QueueChanges = session.info.setdefault("queue changes", QueueChanges())
    return changes


def _callbacks_of(session: ReadSession) -> list[Callable[[], None]]:
    callbacks: list[Callable[[], None]] = session.info.setdefault("callbacks", [])
    return callbacks
