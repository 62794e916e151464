"""Database engines: one for reading, one for writing, one for the group commit; pragmas of SQLite."""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import URL, Connection, ExceptionContext, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from determined_master.db import postgresql, sqlite_file, text_search
from determined_master.db.bulk_insert import allow_copy
from determined_master.db.nul import to_json
from determined_master.db.sqlite_connection import NO_WAIT, SYNCED, WAIT, SqliteConnection
from determined_master.errors import StorageUnavailable
from determined_master.settings.database_url import is_sqlite, normalized

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    *SYNCED,
    "PRAGMA foreign_keys=ON",
    WAIT,
    "PRAGMA temp_store=MEMORY",
)


OnUnwritable = Callable[[str, bool], None]
"""Called when the database cannot write, in any thread: its message, and True if the disk is full."""

OnDamage = Callable[[BaseException], None]
"""Called when the database says that it is damaged, in any thread: its error."""

_UNWRITABLE = frozenset(
    {
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_DIR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
    }
)
"""Result codes of SQLite for a reached quota or a disk that does not take writes."""
_POSTGRES_DISK_FULL = "53100"

_OPTIONS: dict[str, Any] = {"hide_parameters": True}
"""Error texts contain no parameters: they may be secrets, and error texts are logged."""
_JSON: dict[str, Any] = {**_OPTIONS, "json_serializer": to_json, "json_deserializer": msgspec.json.decode}


def sqlite_url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


def make_read_engine(url: str) -> AsyncEngine:
    """Engine for reading: its sessions see one frozen view and cannot write."""
    if not is_sqlite(url):
        return create_async_engine(
            normalized(url),
            isolation_level="REPEATABLE READ",
            pool_size=8,
            max_overflow=8,
            pool_pre_ping=True,
            connect_args=postgresql.connect_arguments("det-master: reads", "default_transaction_read_only=on"),
            **_JSON,
        )
    engine = _sqlite_engine(url, "BEGIN", pool_size=8, max_overflow=8, only_reads=True)
    _configure(engine.sync_engine, begin="BEGIN", extra=("PRAGMA query_only=ON",))
    return engine


def make_write_engine(url: str) -> AsyncEngine:
    """Engine for writing: one connection, because states have one writer. On SQLite a transaction locks at its
    begin."""
    if not is_sqlite(url):
        return create_async_engine(
            normalized(url),
            pool_size=1,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args=postgresql.connect_arguments("det-master: states"),
            **_JSON,
        )
    engine = _sqlite_engine(url, "BEGIN IMMEDIATE", pool_size=1, max_overflow=0)
    # Only the thread of the connection waits for the lock.
    _configure(engine.sync_engine, begin="BEGIN IMMEDIATE", extra=(NO_WAIT,))
    return engine


def make_group_engine(url: str) -> Engine:
    """Engine of the group-commit writer: synchronous, used by one thread."""
    if not is_sqlite(url):
        engine = create_engine(
            normalized(url),
            pool_size=1,
            max_overflow=0,
            pool_pre_ping=True,
            connect_args=postgresql.connect_arguments(
                "det-master: reports and lines", f"lock_timeout={postgresql.LOCK_WAIT}"
            ),
            **_JSON,
        )
        allow_copy(engine)
        return engine
    engine = create_engine(_sync(url), pool_size=1, max_overflow=0, connect_args={"check_same_thread": False}, **_JSON)
    _configure(engine, begin="BEGIN IMMEDIATE")
    return engine


def make_migration_engine(url: str) -> Engine:
    """Engine for Alembic: no pool, and a transaction that takes the write lock before it reads the revision. Foreign
    keys stay off while tables are rebuilt: within a transaction SQLite cannot switch them."""
    if not is_sqlite(url):
        arguments = postgresql.connect_arguments("det-master: migrations")
        return create_engine(normalized(url), poolclass=NullPool, connect_args=arguments, **_OPTIONS)
    engine = create_engine(_sync(url), poolclass=NullPool, connect_args={"timeout": 60}, **_OPTIONS)
    _configure(engine, begin="BEGIN IMMEDIATE", pragmas=("PRAGMA foreign_keys=OFF",))
    return engine


def make_copy_engine(url: str) -> Engine:
    """Engine that copies all rows. Each transaction sees one frozen view; SQLite checks no foreign keys."""
    if not is_sqlite(url):
        arguments = postgresql.connect_arguments("det-master: copy")
        level: Any = {"isolation_level": "REPEATABLE READ"}
        engine = create_engine(normalized(url), poolclass=NullPool, connect_args=arguments, **level, **_JSON)
        allow_copy(engine)
        return engine
    engine = create_engine(_sync(url), poolclass=NullPool, connect_args={"timeout": 60}, **_JSON)
    _configure(engine, begin="BEGIN", pragmas=("PRAGMA foreign_keys=OFF",))
    return engine


def _sqlite_engine(url: str, begin: str, *, pool_size: int, max_overflow: int, only_reads: bool = False) -> AsyncEngine:
    async def connect() -> SqliteConnection:
        arguments, options = engine.dialect.create_connect_args(engine.url)
        options.update(isolation_level=None, check_same_thread=False)
        return await SqliteConnection(begin, only_reads=only_reads).open(
            partial(sqlite3.connect, *arguments, **options)
        )

    engine = create_async_engine(
        normalized(url), async_creator=connect, pool_size=pool_size, max_overflow=max_overflow, **_JSON
    )
    return engine


def report_failures(engine: Engine, on_unwritable: OnUnwritable, on_damage: OnDamage) -> None:
    """Makes ``engine`` raise StorageUnavailable if the database cannot write, is damaged or away."""

    @event.listens_for(engine, "handle_error", retval=True)
    def _convert(context: ExceptionContext) -> BaseException | None:
        original = context.original_exception
        if postgresql.is_away(context):
            return StorageUnavailable(StorageUnavailable.AWAY)
        if getattr(original, "sqlite_errorcode", 0) & sqlite_file.PRIMARY_CODE in sqlite_file.DAMAGE:
            on_damage(original)
            return StorageUnavailable(StorageUnavailable.DAMAGED)
        if not _is_unwritable(original):
            return None
        is_full = _is_full(original)
        on_unwritable(str(original), is_full)
        return StorageUnavailable() if is_full else StorageUnavailable(StorageUnavailable.FAILING)


def _is_unwritable(error: BaseException | None) -> bool:
    return _is_full(error) or getattr(error, "sqlite_errorcode", None) in _UNWRITABLE


def _is_full(error: BaseException | None) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return code == sqlite3.SQLITE_FULL or getattr(error, "sqlstate", None) == _POSTGRES_DISK_FULL


def _sync(url: str) -> URL:
    return make_url(url).set(drivername="sqlite")


def _configure(engine: Engine, *, begin: str, pragmas: tuple[str, ...] = _PRAGMAS, extra: tuple[str, ...] = ()) -> None:
    @event.listens_for(engine, "connect")
    def _connect(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.isolation_level = None  # only the listener below begins transactions
        text_search.register(connection)
        cursor = connection.cursor()
        for pragma in pragmas + extra:
            cursor.execute(pragma)
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        driver = connection.connection.driver_connection
        if isinstance(driver, SqliteConnection):
            driver.begin()
        elif not (isinstance(driver, sqlite3.Connection) and driver.in_transaction):
            connection.exec_driver_sql(begin)

    @event.listens_for(engine, "invalidate")
    def _invalidate(connection: DBAPIConnection, _record: ConnectionPoolEntry, _error: BaseException | None) -> None:
        # A cancelled statement ends here. Closing alone would keep the lock for as long as a cursor is referenced.
        connection.rollback()
