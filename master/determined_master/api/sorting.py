"""Sort orders of queries in SQL; unsupported keys answer 501 instead of being ignored."""

from collections.abc import Mapping
from typing import TypeVar

from determined.errors import NotImplementedYet

C = TypeVar("C")
UNSPECIFIED = ("", "SORT_BY_UNSPECIFIED")


def column_of(sort_by: str, columns: Mapping[str, C], default: C) -> C:
    """Returns the column to sort by in SQL. Raises NotImplementedYet for a key that is not in ``columns``."""
    return default if sort_by in UNSPECIFIED else _known(sort_by, columns)


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
