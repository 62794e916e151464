"""Inserts, changes and deletes rows by their primary keys.

Statements are of the table, not of objects, and are built once: both take less time than the ORM.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Column, Select, Table, bindparam, delete, insert, inspect, update
from sqlalchemy.orm.attributes import set_committed_value
from sqlalchemy.sql.dml import ReturningInsert

from determined_master.db.models.base import Base, table_of
from determined_master.db.session import WriteSession
from determined_master.db.session_pool import connection_of
from determined_master.db.statements.nul import NUL, SYMBOL, to_json
from determined_master.db.statements.prepared import Prepared

_STATE = "state"
"""Name of the state column in every such table."""
_KEY = "primary_key"
"""Parameter of a change. Its other parameters are columns."""


async def insert_rows(session: WriteSession, table: Table, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts rows that all have the same columns. Missing columns get their default."""
    await _insertion(table).execute(session, rows)


async def insert_for_keys(session: WriteSession, table: Table, rows: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Inserts rows like ``insert_rows``, and returns their primary keys in the same order."""
    found = await (await connection_of(session)).execute(_insertion_for_keys(table), rows)
    return list(found.scalars())


async def update_rows(session: WriteSession, model: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Changes rows by their primary keys. Each of ``rows`` has the key and the same columns. Objects of the session are
    not changed."""
    key = _key_of(model).name
    await _update(model).execute(session, [{_KEY if name == key else name: row[name] for name in row} for row in rows])


async def change_row(
    session: WriteSession, row: Base, values: Mapping[str, Any], *, states: frozenset[Any] | None = None
) -> bool:
    """Sets columns of ``row``, an object of the session, which gets the values without a look at the database.
    ``values`` holds no SQL expressions.

    ``states``: only if the row is in one of these; returns False if it is not. Raises InvalidRequestError if the row is
    gone.
    """
    model = type(row)
    columns = inspect(model).columns
    parameters = {columns[name].name: value for name, value in values.items()}
    parameters[_KEY] = getattr(row, _key_of(model).name)
    if not await _update(model, states, returns_key=True).rows(session, **parameters):
        if states is None:
            await session.refresh(row)
        return False
    for name, value in values.items():
        set_committed_value(row, name, _stored(value))
    return True


async def delete_rows(session: WriteSession, table: type[Base], ids: Select[Any]) -> int:
    """Deletes the rows whose primary keys ``ids`` selects and returns their number."""
    key = _key_of(table)
    statement = delete(table).where(key.in_(ids)).returning(key)
    found = await session.execute(statement, execution_options={"synchronize_session": False})
    return len(found.all())


def _stored(value: object) -> object:
    """Returns a value as the database gives it back: a NUL is its symbol, and JSON has lists instead of tuples."""
    if isinstance(value, str):
        return value.replace(NUL, SYMBOL) if NUL in value else value  # a state stays one
    return msgspec.json.decode(to_json(value)) if isinstance(value, dict | list | tuple) else value


@cache
def _key_of(model: type[Base]) -> Column[Any]:
    (key,) = table_of(model).primary_key.columns
    return key


@cache
def _insertion(table: Table) -> Prepared[()]:
    return Prepared(insert(table))


@cache
def _insertion_for_keys(table: Table) -> ReturningInsert[Any]:
    (key,) = table.primary_key.columns
    return insert(table).returning(key, sort_by_parameter_order=True)


@cache
def _update(model: type[Base], states: frozenset[Any] | None = None, *, returns_key: bool = False) -> Prepared[Any]:
    """Returns a change of the columns that its parameters name."""
    key = _key_of(model)
    statement = update(table_of(model)).where(key == bindparam(_KEY))
    if states is not None:
        statement = statement.where(table_of(model).c[_STATE].in_(states))
    return Prepared(statement.returning(key) if returns_key else statement)
