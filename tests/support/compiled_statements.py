"""Statements that the masters of one test process have compiled.

SQLAlchemy keeps compiled statements by engine. Each test has a master with new engines, which would compile the
statements of all loops and requests again: a quarter of what a test with a master computes.
"""

from typing import Any

from sqlalchemy import Engine
from sqlalchemy.util import LRUCache

from determined_master.db.session import Database

MOST = 2000


class Statements(LRUCache[Any, Any]):
    """A cache of all engines of one dialect. Its keys lack the dialect object, which each engine has for itself."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key[1:], value)

    def get(self, key: Any, default: Any = None) -> Any:
        return super().get(key[1:], default)


_by_dialect: dict[type, Statements] = {}


def share_statements(database: Database) -> None:
    """Lets the engines of a master use what those of earlier masters have compiled."""
    for engine in (database.read_engine.sync_engine, database.write_engine.sync_engine, database.group_engine):
        _share(engine)


def _share(engine: Engine) -> None:
    statements = _by_dialect.setdefault(type(engine.dialect), Statements(MOST))
    engine.update_execution_options(compiled_cache=statements)
