"""PostgreSQL: its connections, and the errors that mean that it is away."""

from typing import Any

from sqlalchemy.engine import ExceptionContext

LEASE_KEY = 7310
"""Key of the lock of a database's one master; also the class of the locks that keep insertions in order (migration
0013)."""

_CONNECT_ERRORS = ("OperationalError", "ConnectionTimeout")
_PASSING = ("starting up", "shutting down", "not yet accepting", "in recovery")
_REPEATABLE = ("40001", "40P01", "55P03")
"""Serialization failure, deadlock, lock not available: the same transaction may succeed later."""

CONNECT_SECONDS = 5
LOCK_WAIT = "250ms"
"""Shorter than PostgreSQL's deadlock_timeout of a second: of two transactions that wait for each other, the group
writer's gives way, never a change of states."""


def connect_arguments(purpose: str, *options: str) -> dict[str, Any]:
    """Returns arguments of a connection: a silent network ends it after some ten seconds.

    Parameters:
        purpose: shown as ``application_name`` in ``pg_stat_activity``.
        options: settings of the session, for instance ``lock_timeout=250ms``.
    """
    return {
        "application_name": purpose,
        "connect_timeout": CONNECT_SECONDS,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "options": " ".join(f"-c {option}" for option in options),
    }


def is_away(context: ExceptionContext) -> bool:
    """Returns True if an error means that there is no connection to the server."""
    error = context.original_exception
    if context.dialect.name != "postgresql" or context.is_pre_ping or not isinstance(error, Exception):
        return False  # a ping only chooses another connection; a cancellation is no error of the server
    return context.is_disconnect or (context.connection is None and type(error).__name__ in _CONNECT_ERRORS)


def is_unreachable(error: BaseException | None) -> bool:
    """Returns True if an attempt to connect got no answer, or the server starts or stops just now; False where the
    server has refused. Such errors of psycopg have no code, only the server's text."""
    text = str(error)
    return type(error).__name__ in _CONNECT_ERRORS and ("FATAL" not in text or any(each in text for each in _PASSING))


def is_repeatable(error: BaseException) -> bool:
    """Returns True if a transaction failed because of another one, and can be repeated."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) in _REPEATABLE
