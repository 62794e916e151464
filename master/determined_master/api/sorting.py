"""Sorts lists in memory as a query asks; unsupported keys answer 501 instead of being ignored."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from determined.errors import NotImplementedYet
from determined_master.api.schemas.enums import is_descending

T = TypeVar("T")
UNSPECIFIED = ("", "SORT_BY_UNSPECIFIED")


def sort(rows: list[T], sort_by: str, order_by: str, keys: Mapping[str, Callable[[T], Any]]) -> None:
    """Sorts in place. Raises NotImplementedYet for a key that is not in ``keys``."""
    if sort_by not in UNSPECIFIED:
        if sort_by not in keys:
            raise NotImplementedYet(f"sorting by {sort_by[:100]} is not offered; {', '.join(sorted(keys))} are")
        rows.sort(key=keys[sort_by])
    if is_descending(order_by):
        rows.reverse()


def refuse_given(**parameters: object) -> None:
    """Raises NotImplementedYet for the first parameter that was given: it would have no effect."""
    for name, value in parameters.items():
        if value:
            raise NotImplementedYet(f"the parameter {name} is not offered yet")
