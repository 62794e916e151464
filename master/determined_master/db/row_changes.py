"""Changes columns of one row. Its object gets the new values without a look at the database.

Statements are of the table, not of objects, and are built once: both take less time than an update by the ORM.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
from sqlalchemy import Column, bindparam, inspect, update
from sqlalchemy.orm.attributes import set_committed_value

from determined_master.db.base import Base, table_of
from determined_master.db.nul import NUL, SYMBOL, to_json
from determined_master.db.prepared import Prepared
from determined_master.db.session import WriteSession

_STATE = "state"
"""Name of the state column in every such table."""


async def change_row(
    session: WriteSession, row: Base, values: Mapping[str, Any], *, states: frozenset[Any] | None = None
) -> bool:
    """Sets columns of ``row``, an object of the session. ``values`` holds no SQL expressions.

    ``states``: only if the row is in one of these; returns False if it is not. Raises InvalidRequestError if the row is
    gone.
    """
    key = _key_of(type(row))
    parameters = {"of_key": getattr(row, key.key)} | {f"to_{name}": value for name, value in values.items()}
    if not await _update(type(row), tuple(values), states).rows(session, **parameters):
        if states is None:
            await session.refresh(row)
        return False
    for name, value in values.items():
        set_committed_value(row, name, _stored(value))
    return True


def _stored(value: object) -> object:
    """Returns a value as the database gives it back: a NUL is its symbol, and JSON has lists instead of tuples."""
    if isinstance(value, str):
        return value.replace(NUL, SYMBOL) if NUL in value else value  # a state stays one
    return msgspec.json.decode(to_json(value)) if isinstance(value, dict | list | tuple) else value


def _key_of(model: type[Base]) -> Column[Any]:
    (key,) = table_of(model).primary_key.columns
    return key


@lru_cache(maxsize=1024)
def _update(model: type[Base], names: tuple[str, ...], states: frozenset[Any] | None) -> Prepared[Any]:
    key, columns = _key_of(model), inspect(model).columns
    statement = update(table_of(model)).where(key == bindparam("of_key"))
    if states is not None:
        statement = statement.where(columns[_STATE].in_(states))
    values: dict[Any, Any] = {columns[name]: bindparam(f"to_{name}") for name in names}
    return Prepared(statement.values(values).returning(key))
