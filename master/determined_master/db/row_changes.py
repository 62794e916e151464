"""Changes columns of one row. Its object gets the new values without a look at the database."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Update, inspect, update
from sqlalchemy.orm.attributes import set_committed_value

from determined_master.db.base import Base, table_of
from determined_master.db.session import WriteSession


def update_of(model: type[Base], values: Mapping[str, object], *where: ColumnElement[bool]) -> Update:
    """Returns the statement that sets attributes of ``model`` to ``values``; objects of sessions are unchanged."""
    columns = inspect(model).columns
    return update(table_of(model)).where(*where).values({columns[name]: value for name, value in values.items()})


async def change_row(session: WriteSession, row: Base, values: Mapping[str, Any]) -> None:
    """Sets columns of ``row``, an object of the session. ``values`` holds no SQL expressions."""
    mapper = inspect(type(row))
    key = [
        column == value for column, value in zip(mapper.primary_key, mapper.primary_key_from_instance(row), strict=True)
    ]
    changed = await session.execute(update_of(type(row), values, *key).returning(mapper.primary_key[0]))
    if changed.first() is None:
        await session.refresh(row)  # raises: the row is gone
    set_values(row, values)


def set_values(row: Base, values: Mapping[str, Any]) -> None:
    """Sets attributes of an object to what the database has."""
    for name, value in values.items():
        set_committed_value(row, name, value)
