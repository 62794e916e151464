"""Sort orders of queries in SQL. An unknown key is 400; one that only Determined has is 501. None is ignored."""

from collections.abc import Collection, Mapping
from typing import TypeVar

from determined.errors import BadRequest, NotImplementedYet

C = TypeVar("C")
NOT_OFFERED = frozenset({"SORT_BY_LOG_RETENTION_DAYS", "SORT_BY_LAST_EXPERIMENT_START_TIME", "SORT_BY_CREATION_TIME"})
"""Keys of lists of Determined that this master does not sort by."""
UNSPECIFIED = ("", "SORT_BY_UNSPECIFIED")


def column_of(sort_by: str, columns: Mapping[str, C], default: C) -> C:
    """Returns the column to sort by in SQL. Raises BadRequest for a key that is not in ``columns``, and
    NotImplementedYet for one that Determined has."""
    return default if sort_by in UNSPECIFIED else _known(sort_by, columns)


def _known(sort_by: str, columns: Mapping[str, C]) -> C:
    if sort_by not in columns:
        refused = NotImplementedYet if sort_by in NOT_OFFERED else BadRequest
        raise refused(f"sorting by {sort_by[:100]} is not supported; valid columns: {', '.join(sorted(columns))}")
    return columns[sort_by]


def check_member(parameter: str, value: str, members: Collection[str]) -> None:
    """Raises BadRequest for a value that is not in ``members``, which are those that Determined has."""
    if value not in members:
        known = ", ".join(sorted(member for member in members if member))
        raise BadRequest(f"{parameter} {value[:100]} is not supported; valid values: {known}")


def refuse_given(**parameters: object) -> None:
    """Raises NotImplementedYet for the first parameter that was given: it would have no effect."""
    for name, value in parameters.items():
        if value:
            raise NotImplementedYet(f"the parameter {name} is not supported yet")
