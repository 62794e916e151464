"""Offset and limit of the API: 0 and -1 mean all, -2 none, a negative offset counts from the end."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from determined_master.api.schemas.base import Pagination

T = TypeVar("T")


@dataclass(frozen=True)
class Window:
    offset: int
    limit: int | None
    asked: int = 0
    """The offset of the request, which may be negative or beyond the end."""

    @classmethod
    def of(cls, offset: int | None, limit: int | None, total: int) -> "Window":
        start = offset or 0
        start = max(0, total + start) if start < 0 else min(start, total)
        if limit == -2:
            return cls(start, 0, offset or 0)
        return cls(start, limit if limit is not None and limit > 0 else None, offset or 0)

    def pagination(self, total: int, shown: int, limit: int | None) -> Pagination:
        return Pagination(
            offset=self.asked,
            limit=limit or 0,
            start_index=self.offset,
            end_index=self.offset + shown,
            total=total,
        )


def page(items: Sequence[T], offset: int | None, limit: int | None) -> tuple[list[T], Pagination]:
    """Returns one page of a list in memory."""
    total = len(items)
    window = Window.of(offset, limit, total)
    end = total if window.limit is None else window.offset + window.limit
    shown = list(items[window.offset : end])
    return shown, window.pagination(total, len(shown), limit)
