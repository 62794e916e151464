"""The declarative base and the column types that every table shares."""

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

from sqlalchemy import BigInteger, Integer, MetaData, String, Table
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import JSON, TypeDecorator

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

BigId = BigInteger().with_variant(Integer, "sqlite")
"""A 64-bit key that SQLite still increments automatically."""


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC datetime, stored as microseconds since the epoch: exact, ordered and equal on every engine."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        return None if value is None else to_micros(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        return None if value is None else from_micros(value)


class StateText(TypeDecorator[Enum]):
    """A string enum, stored as its value and loaded as the enum."""

    impl = String
    cache_ok = True

    def __init__(self, kind: type[Enum], length: int = 32) -> None:
        super().__init__(length)
        self.kind = kind
        self._members = {each.value: each for each in kind}

    def process_bind_param(self, value: Enum | str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        return str((value if isinstance(value, self.kind) else self.kind(value)).value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Enum | None:
        # Only a value that is none gets to the enum, whose call takes longer than to look it up.
        return None if value is None else self._members.get(value) or self.kind(value)


def to_micros(value: datetime) -> int:
    return (value - _EPOCH) // _MICROSECOND


def from_micros(value: int) -> datetime:
    """Converts microseconds. Times of earlier versions beyond the bounds become the bound."""
    value = min(_LATEST_MICROS, max(_EARLIEST_MICROS, value))
    return datetime.fromtimestamp(value // 1_000_000, UTC).replace(microsecond=value % 1_000_000)


MAX_INT64 = 2**63 - 1
EARLIEST = datetime(1900, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""Bounds of stored times: each has a date in every time zone, with room for differences."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EARLIEST_MICROS, _LATEST_MICROS = to_micros(EARLIEST), to_micros(LATEST)


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {
        int: BigId,
        dict[str, Any]: JSON,
        list[Any]: JSON,
        list[str]: JSON,
        list[int]: JSON,
        datetime: UtcTime,
    }


def table_of(model: type[Base]) -> Table:
    """Returns the table of a model, for statements of SQLAlchemy Core."""
    table = model.__table__
    if not isinstance(table, Table):
        raise TypeError(f"{model.__name__} is mapped to {table}, not to a table")
    return table
