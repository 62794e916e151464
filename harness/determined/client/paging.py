"""Reads paged lists as one."""

from collections.abc import Iterator, Mapping
from typing import Any

from determined.client.session import Session

PAGE = 200


def items(
    session: Session,
    path: str,
    key: str,
    query: Mapping[str, Any] | None = None,
    *,
    limit: int | None = None,
    offset: int = 0,
) -> Iterator[dict[str, Any]]:
    """Yields every item under ``key``, page after page, at most ``limit``, without the first ``offset``."""
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        answer = session.get(path, {**(query or {}), "offset": offset, "limit": size})
        page = answer[key]
        yield from page
        offset += len(page)
        left = None if left is None else left - len(page)
        # A page without items ends the loop too, so that a wrong total cannot make it endless.
        if not page or offset >= int((answer.get("pagination") or {}).get("total") or 0):
            return
