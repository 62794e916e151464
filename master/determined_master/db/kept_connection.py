"""The connection of the group-commit writer, kept between groups."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from determined_master.db.sqlite_connection import NO_WAIT, WAIT

BEGIN = "BEGIN IMMEDIATE"
"""SQLAlchemy, which finds a transaction of the driver begun, needs ten times as long to begin it."""

_DRIVER = "driver of a transaction that SQLAlchemy has not begun"


def driver_of(connection: Connection) -> sqlite3.Connection | None:
    """Returns the driver in a transaction of ``begin_at_once``. Prepared statements go to it, whose errors are its own;
    other statements go to SQLAlchemy, and are part of the same transaction."""
    driver: sqlite3.Connection | None = connection.info.get(_DRIVER)
    return driver


class KeptConnection:
    """Taking a connection from a pool costs as much as a small group. A failed transaction closes it, so that the next
    one gets a new connection."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._open: Connection | None = None
        self._waits: bool | None = None
        """Whether the open connection waits for locks; None for one that is new."""
        self._begun: Connection | None = None

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        connection = self._take()
        try:
            if connection.dialect.name == "sqlite":
                try:
                    self._wait_for_lock(connection, waits=False).execute(BEGIN)
                except sqlite3.Error:  # SQLAlchemy waits for the lock, and raises other errors in its terms
                    self._wait_for_lock(connection, waits=True)
            with connection.begin():
                yield connection
        except BaseException:
            connection.close()
            raise
        self._open = connection

    def begin_at_once(self) -> Connection:
        """Begins a transaction of SQLite that ``commit`` or ``drop`` ends. Raises sqlite3.OperationalError if another
        program holds the lock, for which it does not wait."""
        connection = self._take()
        try:
            driver = self._wait_for_lock(connection, waits=False)
            driver.execute(BEGIN)
        except BaseException:
            _discard(connection)
            raise
        connection.info[_DRIVER] = driver
        self._begun = connection
        return connection

    def commit(self) -> None:
        """Commits what ``begin_at_once`` has begun, or undoes it and raises an error of SQLAlchemy or of the driver."""
        connection = self._begun
        assert connection is not None
        driver = connection.info.pop(_DRIVER)
        try:
            if connection.in_transaction():
                connection.commit()
            else:
                driver.commit()
        except BaseException:
            self.drop()
            raise
        self._open, self._begun = connection, None

    def drop(self) -> None:
        """Undoes what ``begin_at_once`` has begun."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.info.pop(_DRIVER, None)
            _discard(begun)

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _wait_for_lock(self, connection: Connection, *, waits: bool) -> sqlite3.Connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        if self._waits is not waits:
            driver.execute(WAIT if waits else NO_WAIT)
            self._waits = waits
        return driver

    def _take(self) -> Connection:
        connection, self._open = self._open, None
        if connection is None:
            connection, self._waits = self._engine.connect(), None
        return connection


def _discard(connection: Connection) -> None:
    """Ends a connection and its transaction, also one whose commit failed, which SQLAlchemy takes for ended."""
    connection.invalidate()
    connection.close()
