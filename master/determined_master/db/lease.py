"""The lease of a PostgreSQL database: one master at a time, by a lock that ends with its connection.

SQLite needs none: its file lies in a data folder, which one master locks.
"""

import logging
import os
import socket
import time
from collections.abc import Callable

from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.engine import Connection
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from determined_master.db import postgresql
from determined_master.errors import StorageUnavailable
from determined_master.settings.database_url import normalized

logger = logging.getLogger(__name__)

CHECK_SECONDS = 2.0
RETRY_SECONDS = 0.5
HANDOVER_TRIES, HANDOVER_SECONDS = 20, 0.02
"""For the moment in which the server ends the connection of a master that has just ended."""
_TAKE = text("SELECT pg_try_advisory_lock(:key)")
_BACKEND = text("SELECT pg_backend_pid()")
_HOLDS = f"""
FROM pg_locks WHERE locktype = 'advisory' AND classid = 0 AND objid = {postgresql.LEASE_KEY} AND objsubid = 1
AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_HOLDER = text(
    "SELECT application_name, client_addr, backend_start FROM pg_stat_activity WHERE pid IN (SELECT pid " + _HOLDS + ")"
)
_IS_HELD_BY = "SELECT EXISTS (SELECT 1 " + _HOLDS + " AND pid = %s)"


class DatabaseTaken(Exception):
    """Another master uses the database. The text names it in one line."""


class DatabaseAway(Exception):
    """The database cannot be reached, or refuses this master. The text is one line."""


class Lease:
    """The lease of one master.

    Parameters:
        url: URL of the database.
    """

    def __init__(self, url: str) -> None:
        name = f"det-master {socket.gethostname()[:40]} pid {os.getpid()}"
        arguments = postgresql.connect_arguments(name)
        self._engine: Engine = create_engine(
            normalized(url),
            poolclass=NullPool,
            isolation_level="AUTOCOMMIT",
            connect_args=arguments,
            hide_parameters=True,
        )
        self._connection: Connection | None = None
        self._backend: int | None = None

    def acquire(self, *, patience: float = 0.0, sleep: Callable[[float], None] = time.sleep) -> None:
        """Takes the lease. Blocking.

        Parameters:
            patience: seconds during which it tries again where the server does not answer.

        Raises:
            DatabaseTaken: another master has it.
            DatabaseAway: no connection.
        """
        until = time.monotonic() + patience
        while True:
            try:
                self._take()
                return
            except DBAPIError as error:
                if not postgresql.is_unreachable(error.orig) or time.monotonic() >= until:
                    raise DatabaseAway(f"cannot use the database: {_one_line(error)}") from error
                sleep(RETRY_SECONDS)

    def _take(self) -> None:
        self._drop()
        connection = self._engine.connect()
        try:
            _take_lock(connection)
            self._backend = connection.execute(_BACKEND).scalar_one()
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def check(self) -> None:
        """Takes the lease again where its connection was lost. Blocking. Raises DatabaseTaken and DatabaseAway."""
        if self._connection is not None:
            try:
                self._connection.execute(_BACKEND)
                return
            except DBAPIError:
                logger.warning("the database is lost; this master tries to reach it and writes nothing meanwhile")
        self.acquire()
        logger.warning("the database is back and this master has its lease again")

    def guard(self, engine: Engine) -> None:
        """Makes each new connection of ``engine`` fail while this master does not hold the lease: after a restart of
        the server another master may have taken it."""

        @event.listens_for(engine, "connect")
        def _refuse(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
            cursor = connection.cursor()
            cursor.execute(_IS_HELD_BY, (self._backend or 0,))
            row = cursor.fetchone()
            cursor.close()
            connection.rollback()
            if row is None or not row[0]:
                raise StorageUnavailable(StorageUnavailable.AWAY)

    def release(self) -> None:
        self._drop()
        self._engine.dispose()

    def _drop(self) -> None:
        self._backend = None
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None


def _take_lock(connection: Connection) -> None:
    for _ in range(HANDOVER_TRIES):
        if connection.execute(_TAKE, {"key": postgresql.LEASE_KEY}).scalar_one():
            return
        if (holder := find_holder(connection)) is not None:
            raise DatabaseTaken(f"another master uses this database: {holder}")
        time.sleep(HANDOVER_SECONDS)
    raise DatabaseTaken("another master uses this database: it has ended just now; try again")


def find_holder(connection: Connection) -> str | None:
    """Returns who holds the lease; None if its master has ended, of which the server frees it at once."""
    row = connection.execute(_HOLDER).first()
    if row is None:
        return None
    name, address, since = row
    return f"{name} from {address or 'this machine'}, since {since:%Y-%m-%d %H:%M:%S %Z}".strip()


def _one_line(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())
