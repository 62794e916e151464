"""Sort orders of queries, in SQL or in memory; unsupported keys answer 501 instead of being ignored."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from determined.errors import NotImplementedYet
from determined_master.api.schemas.enums import is_descending

T = TypeVar("T")
C = TypeVar("C")
UNSPECIFIED = ("", "SORT_BY_UNSPECIFIED")


def column_of(sort_by: str, columns: Mapping[str, C], default: C) -> C:
    """Returns the column to sort by in SQL. Raises NotImplementedYet for a key that is not in ``columns``."""
    return default if sort_by in UNSPECIFIED else _known(sort_by, columns)


def sort(rows: list[T], sort_by: str, order_by: str, keys: Mapping[str, Callable[[T], Any]]) -> None:
    """Sorts in place. Raises NotImplementedYet for a key that is not in ``keys``."""
    if sort_by not in UNSPECIFIED:
        rows.sort(key=_known(sort_by, keys))
    if is_descending(order_by):
        rows.reverse()


def _known(sort_by: str, columns: Mapping[str, C]) -> C:
    if sort_by not in columns:
        raise NotImplementedYet(
            f"sorting by {sort_by[:100]} is not supported; valid columns: {', '.join(sorted(columns))}"
        )
    return columns[sort_by]


def refuse_given(**parameters: object) -> None:
    """Raises NotImplementedYet for the first parameter that was given: it would have no effect."""
    for name, value in parameters.items():
        if value:
            raise NotImplementedYet(f"the parameter {name} is not supported yet")
