"""Database engines: one for reading, one for writing, one for the group commit; pragmas of SQLite."""

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import Connection, ExceptionContext, make_url
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from determined_master.db import postgresql
from determined_master.db.sqlite import file as sqlite_file
from determined_master.db.sqlite.connection import NO_WAIT, SYNCED, WAIT, SqliteConnection
from determined_master.db.statements import text_search
from determined_master.db.statements.bulk_insert import allow_copy
from determined_master.db.statements.nul import to_json
from determined_master.errors import StorageUnavailable
from determined_master.settings.database_url import is_sqlite, normalized

_PRAGMAS = (
    "PRAGMA journal_mode=WAL",
    *SYNCED,
    "PRAGMA foreign_keys=ON",
    WAIT,
    "PRAGMA temp_store=MEMORY",
)
_WITHOUT_FOREIGN_KEYS = ("PRAGMA foreign_keys=OFF",)


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

_OPTIONS: dict[str, Any] = {
    "hide_parameters": True,  # they may be secrets, and texts of errors are logged
    "json_serializer": to_json,
    "json_deserializer": msgspec.json.decode,
}
_ONE_CONNECTION: dict[str, Any] = {"pool_size": 1, "max_overflow": 0}


def sqlite_url(path: Path) -> str:
    return f"sqlite+aiosqlite:///{path}"


def make_read_engine(url: str) -> AsyncEngine:
    """Engine for reading: its sessions see one frozen view and cannot write."""
    if is_sqlite(url):
        return _sqlite_in_loop(url, "BEGIN", "PRAGMA query_only=ON", only_reads=True, pool_size=8, max_overflow=8)
    options = _on_postgresql("reads", "default_transaction_read_only=on", pool_size=8, max_overflow=8)
    return create_async_engine(normalized(url), isolation_level="REPEATABLE READ", **options)


def make_write_engine(url: str) -> AsyncEngine:
    """Engine for writing: one connection, because states have one writer. On SQLite a transaction locks at its
    begin."""
    if is_sqlite(url):
        # Only the thread of the connection waits for the lock.
        return _sqlite_in_loop(url, "BEGIN IMMEDIATE", NO_WAIT, **_ONE_CONNECTION)
    return create_async_engine(normalized(url), **_on_postgresql("states", **_ONE_CONNECTION))


def make_group_engine(url: str) -> Engine:
    """Engine of the group-commit writer: synchronous, used by one thread."""
    if is_sqlite(url):
        return _sqlite(url, "BEGIN IMMEDIATE", _PRAGMAS, check_same_thread=False, **_ONE_CONNECTION)
    wait = f"lock_timeout={postgresql.LOCK_WAIT}"
    engine = create_engine(normalized(url), **_on_postgresql("reports and lines", wait, **_ONE_CONNECTION))
    allow_copy(engine)
    return engine


def make_migration_engine(url: str) -> Engine:
    """Engine for Alembic: no pool, and a transaction that takes the write lock before it reads the revision. Foreign
    keys stay off while tables are rebuilt: within a transaction SQLite cannot switch them."""
    if is_sqlite(url):
        return _sqlite(url, "BEGIN IMMEDIATE", _WITHOUT_FOREIGN_KEYS, timeout=60, poolclass=NullPool)
    return create_engine(normalized(url), **_on_postgresql("migrations", poolclass=NullPool))


def make_copy_engine(url: str) -> Engine:
    """Engine that copies all rows. Each transaction sees one frozen view; SQLite checks no foreign keys."""
    if is_sqlite(url):
        return _sqlite(url, "BEGIN", _WITHOUT_FOREIGN_KEYS, timeout=60, poolclass=NullPool)
    options = _on_postgresql("copy", poolclass=NullPool, isolation_level="REPEATABLE READ")
    engine = create_engine(normalized(url), **options)
    allow_copy(engine)
    return engine


def _on_postgresql(purpose: str, *settings: str, **options: Any) -> dict[str, Any]:  # noqa: ANN401  # of an engine
    """Returns the options of an engine. A pool looks whether a connection still lives before it gives it out."""
    if "poolclass" not in options:
        options["pool_pre_ping"] = True
    return {"connect_args": postgresql.connect_arguments(f"det-master: {purpose}", *settings), **_OPTIONS, **options}


def _sqlite(url: str, begin: str, pragmas: tuple[str, ...], **options: Any) -> Engine:  # noqa: ANN401  # as above
    arguments = {name: options.pop(name) for name in ("check_same_thread", "timeout") if name in options}
    engine = create_engine(make_url(url).set(drivername="sqlite"), connect_args=arguments, **_OPTIONS, **options)
    _configure(engine, begin, pragmas)
    return engine


def _sqlite_in_loop(
    url: str,
    begin: str,
    pragma: str,
    *,
    only_reads: bool = False,
    **options: Any,  # noqa: ANN401  # as above
) -> AsyncEngine:
    async def connect() -> SqliteConnection:
        arguments, settings = engine.dialect.create_connect_args(engine.url)
        settings.update(isolation_level=None, check_same_thread=False)
        return await SqliteConnection(begin, only_reads=only_reads).open(
            partial(sqlite3.connect, *arguments, **settings)
        )

    engine = create_async_engine(normalized(url), async_creator=connect, **_OPTIONS, **options)
    _configure(engine.sync_engine, begin, (*_PRAGMAS, pragma))
    return engine


def _configure(engine: Engine, begin: str, pragmas: tuple[str, ...]) -> None:
    @event.listens_for(engine, "connect")
    def _connect(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.isolation_level = None  # only the listener below begins transactions
        text_search.register(connection)
        cursor = connection.cursor()
        for pragma in pragmas:
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
