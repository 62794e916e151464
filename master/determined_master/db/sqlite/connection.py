"""A connection of SQLite for the event loop. Its short statements run in the loop, the others in a thread of their own.

It has the interface that SQLAlchemy expects of aiosqlite, which switches to its thread four times per statement: for
the cursor, the execution, the rows and the end of the cursor. A switch costs as much as a small statement. This one
begins a transaction together with its first statement, and switches once for what may take time: to take the lock for
writing, to commit, to change many rows, and to continue with a query that turned out to be long.
"""

import asyncio
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

SHORT_STEPS = 5000
"""Instructions of SQLite's machine; after one to two times as many a query is long. They took 0.04 ms (a sum) to 0.1 ms
(a look into texts) when measured."""
WAIT, NO_WAIT = "PRAGMA busy_timeout=10000", "PRAGMA busy_timeout=0"
"""Whether a connection waits for a lock that another program holds, and for how many milliseconds."""
SYNCED = ("PRAGMA synchronous=FULL", "PRAGMA wal_autocheckpoint=1000")
"""A commit waits until it is on the disk; after so many pages it moves them from the log into the database."""
UNSYNCED = ("PRAGMA synchronous=NORMAL", "PRAGMA wal_autocheckpoint=0")
"""A commit only appends to the log of changes, which takes no time. A power failure may undo it, together with all that
follow; the next one that waits for the disk makes it last."""
YIELD_SECONDS = 0.002
"""After this time of short statements the event loop runs its other tasks."""
_MAX_LONG = 500
_SMALL = ("INSERT", "UPDATE", "SAVEPOINT", "RELEASE", "ROLLBACK")
"""Changes that are short where they have few values and no query."""
_MAX_SHORT_ROWS, _MAX_SHORT_VALUES, _MAX_SHORT_VALUE = 8, 64, 16384


class SqliteConnection:
    """A connection in autocommit mode: a transaction begins only by ``begin``."""

    def __init__(self, begin: str, *, only_reads: bool = False) -> None:
        """``begin``: the statement by which transactions begin. ``only_reads``: transactions write nothing, so that
        none takes time to end."""
        self._begin_statement = begin
        self.only_reads = only_reads
        self._connection: sqlite3.Connection | None = None  # SQLAlchemy does not end transactions if it is None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sqlite")
        self._begin: str | None = None
        self._is_synced = True
        """Whether the commit of the next transaction waits for the disk."""
        self._is_idle = True
        """False after a cancelled call, which the thread may still be about to make."""
        self._pauses_left: int | None = None
        """How often SQLite may still call this connection before it interrupts a query; None: for ever."""
        self._began_in_loop: float | None = None
        self._long: set[str] = set()
        """Queries that have been too long for the loop; the next time they begin in the thread."""

    async def open(self, connect: Callable[[], sqlite3.Connection]) -> "SqliteConnection":
        """Opens the connection by ``connect``. It must allow calls of other threads."""
        try:
            self._connection = await self._call(connect)
            self._connection.set_progress_handler(self._is_too_long, SHORT_STEPS)
        except BaseException:
            self.stop()
            raise
        return self

    def begin(self) -> None:
        """Begins a transaction together with the next statement, unless there is one."""
        if not self._open.in_transaction:
            self._begin = self._begin_statement

    def do_not_sync(self) -> None:
        """Makes the commit of the next transaction not wait for the disk. Call it between transactions."""
        if self._is_idle:
            self._is_synced = False
            self._set(UNSYNCED)

    def cursor(self) -> "SqliteCursor":
        return SqliteCursor(self)

    async def execute(self, sql: str, values: Sequence[Any], *, is_many: bool = False) -> "Answer":
        begin, self._begin = self._begin, None
        is_short = self._may_be_short(sql, values if is_many else [values])
        if self._is_idle and is_short and (begin is None or self._begins(begin)):
            begin = None
            if self._has_run_for_long():
                await asyncio.sleep(0)
            try:
                return self._execute_in_loop(sql, values, is_many=is_many)
            except sqlite3.OperationalError as error:
                if str(error) != "interrupted":
                    raise
                # A query that was interrupted leaves its transaction as it was.
                if len(self._long) >= _MAX_LONG:
                    self._long.clear()
                self._long.add(sql)
        return await self._call(partial(self._execute_in_thread, self._open, begin, sql, values, is_many=is_many))

    def _begins(self, begin: str) -> bool:
        """Begins a transaction in the loop. Returns False if that would mean to wait for a lock."""
        try:
            self._open.execute(begin)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def _may_be_short(self, sql: str, rows: Sequence[Sequence[Any]]) -> bool:
        """Returns True for a query that was not too long before, and for a change of a row or a few."""
        if self.only_reads or _is_query(sql):
            return sql not in self._long
        if not sql.startswith(_SMALL) or "SELECT" in sql or len(rows) > _MAX_SHORT_ROWS:
            return False
        return all(len(values) <= _MAX_SHORT_VALUES and not any(map(_is_large, values)) for values in rows)

    def _has_run_for_long(self) -> bool:
        """Returns True where the loop's other tasks are to run first."""
        now = time.perf_counter()
        if self._began_in_loop is None:
            self._began_in_loop = now
        elif now - self._began_in_loop > YIELD_SECONDS:
            self._began_in_loop = None
            return True
        return False

    def _execute_in_loop(self, sql: str, values: Sequence[Any], *, is_many: bool) -> "Answer":
        """Raises OperationalError "interrupted" for a query that is long. A change is not interrupted, which would
        undo its whole transaction."""
        # SQLite counts the instructions of a statement over all of its executions, so the first call says nothing.
        self._pauses_left = 1 if self.only_reads or _is_query(sql) else None
        try:
            return _execute(self._open, sql, values, is_many=is_many)
        finally:
            self._pauses_left = None

    def _execute_in_thread(
        self, connection: sqlite3.Connection, begin: str | None, sql: str, values: Sequence[Any], *, is_many: bool
    ) -> "Answer":
        if begin is not None and self.only_reads:
            connection.execute(begin)  # takes no lock
        elif begin is not None:
            connection.execute(WAIT)
            try:
                connection.execute(begin)
            finally:
                connection.execute(NO_WAIT)
        return _execute(connection, sql, values, is_many=is_many)

    def _is_too_long(self) -> bool:
        if self._pauses_left is None:
            return False
        self._pauses_left -= 1
        return self._pauses_left < 0

    async def create_function(self, name: str, count: int, function: Callable[..., Any], **options: bool) -> None:
        await self._call(partial(self._open.create_function, name, count, function, **options))

    async def commit(self) -> None:
        await self._end(self._open.commit)

    async def rollback(self) -> None:
        await self._end(self._open.rollback)

    async def close(self) -> None:
        """Closes the connection after all earlier calls, and ends its thread."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                await self._call(connection.close)
            finally:
                self._thread.shutdown(wait=False)

    def stop(self) -> None:
        """Like ``close``, without waiting."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._thread.submit(connection.close)
        self._thread.shutdown(wait=False)

    @property
    def in_transaction(self) -> bool:
        return self._open.in_transaction

    @property
    def total_changes(self) -> int:
        return self._open.total_changes

    @property
    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ValueError("no active connection")  # what SQLAlchemy expects of aiosqlite
        return self._connection

    async def _end(self, function: Callable[[], None]) -> None:
        self._begin = None
        try:
            if self._is_idle and not self._open.in_transaction:
                return
            if self._is_idle and (self.only_reads or not self._is_synced):
                function()
            else:
                await self._call(function)
        finally:
            if self._is_idle and not self._is_synced and not self._open.in_transaction:
                self._set(SYNCED)
                self._is_synced = True

    def _set(self, settings: Sequence[str]) -> None:
        for setting in settings:
            self._open.execute(setting)

    async def _call(self, function: Callable[[], T]) -> T:
        """Calls ``function`` in the thread, after all earlier ones."""
        self._is_idle, self._began_in_loop = False, None
        is_cancelled = False
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, function)
        except asyncio.CancelledError:
            is_cancelled = True
            raise
        finally:
            self._is_idle = not is_cancelled


class SqliteCursor:
    """A cursor whose statement is over, with all of its rows, once ``execute`` returns."""

    def __init__(self, connection: SqliteConnection) -> None:
        self._connection = connection
        self._answer = Answer(None, [], -1, None)
        self._left: deque[Any] | None = None
        """The rows that ``fetchmany`` has not returned yet."""
        self.arraysize = 1

    async def __aenter__(self) -> "SqliteCursor":
        return self

    async def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._answer = await self._connection.execute(sql, values)

    async def executemany(self, sql: str, values: Sequence[Sequence[Any]]) -> None:
        self._answer = await self._connection.execute(sql, values, is_many=True)

    async def fetchall(self) -> list[Any]:
        return self._answer.rows

    async def fetchmany(self, size: int) -> list[Any]:
        self._left = deque(self._answer.rows) if self._left is None else self._left
        self._answer.rows.clear()  # rows that were read are freed page by page
        return [self._left.popleft() for _ in range(min(size, len(self._left)))]

    async def close(self) -> None:
        """The statement is over already."""

    @property
    def description(self) -> tuple[Any, ...] | None:
        return self._answer.description

    @property
    def rowcount(self) -> int:
        return self._answer.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._answer.lastrowid


class Answer(NamedTuple):
    """The result of a statement, in the terms of DB-API."""

    description: tuple[Any, ...] | None
    rows: list[Any]
    rowcount: int
    lastrowid: int | None


def _is_query(sql: str) -> bool:
    return sql.startswith("SELECT")


def _is_large(value: object) -> bool:
    return isinstance(value, (str, bytes)) and len(value) > _MAX_SHORT_VALUE


def _execute(connection: sqlite3.Connection, sql: str, values: Sequence[Any], *, is_many: bool) -> Answer:
    cursor = connection.executemany(sql, values) if is_many else connection.execute(sql, values)
    try:
        rows = cursor.fetchall() if cursor.description else []
        return Answer(cursor.description, rows, cursor.rowcount, cursor.lastrowid)
    finally:
        cursor.close()  # a statement that is not over would keep its lock
