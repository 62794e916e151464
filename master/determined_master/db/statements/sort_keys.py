"""Keys by which SQL sorts rows: states in the order of their lives, missing values after all others."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from sqlalchemy import ColumnElement, SQLColumnExpression, case

Keys = tuple[SQLColumnExpression[Any], ...]


def in_order_of_life(column: SQLColumnExpression[Any], states: type[Enum]) -> Keys:
    """Returns the place of a state among the members of its enum, which are defined in the order of their lives."""
    return (case({state: place for place, state in enumerate(states)}, value=column),)


def missing_last(value: SQLColumnExpression[Any]) -> Keys:
    """Returns keys with which NULL follows every value, in SQLite and in PostgreSQL; descending, it precedes them."""
    return (value.is_(None), value)


def directed(keys: Sequence[SQLColumnExpression[Any]], *, descending: bool) -> list[ColumnElement[Any]]:
    """Returns what ``ORDER BY`` takes. The last key is the id: equal rows follow it in the direction of the order."""
    return [key.desc() if descending else key.asc() for key in keys]
