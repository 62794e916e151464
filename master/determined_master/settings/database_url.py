"""URLs of the databases that a master can use."""

from importlib.util import find_spec

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

POSTGRESQL = "postgresql+psycopg"
"""The only driver for PostgreSQL: psycopg 3, which is asynchronous and synchronous."""
SQLITE = "sqlite+aiosqlite"
_DRIVERS = {"postgres": POSTGRESQL, "postgresql": POSTGRESQL, "sqlite": SQLITE}
INSTALL = 'PostgreSQL needs the library psycopg: pip install "detent-cluster[postgres]"'


def normalized(url: str) -> str:
    """Returns the URL with the driver that this master uses.

    >>> normalized("postgres://det@db/lab"), normalized("sqlite:////srv/lab.sqlite")
    ('postgresql+psycopg://det@db/lab', 'sqlite+aiosqlite:////srv/lab.sqlite')
    """
    scheme, separator, rest = url.partition("://")
    return f"{_DRIVERS.get(scheme, scheme)}{separator}{rest}"


def usable_url(url: str) -> str:
    """Returns the URL with its driver. Raises ValueError for a database that this installation cannot use."""
    try:
        driver = make_url(normalized(url)).drivername
    except (ArgumentError, ValueError):
        raise ValueError("this is no database URL, such as postgresql://user:password@host/database") from None
    if driver not in (POSTGRESQL, SQLITE):
        raise ValueError(f"databases of the kind {driver!r} are not supported; use postgresql:// or sqlite://")
    if driver == POSTGRESQL and find_spec("psycopg") is None:
        raise ValueError(INSTALL)
    return normalized(url)


def is_postgresql(url: str) -> bool:
    return make_url(normalized(url)).drivername == POSTGRESQL


def is_sqlite(url: str) -> bool:
    return make_url(normalized(url)).get_backend_name() == "sqlite"
