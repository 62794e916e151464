"""The order that a list is asked for: ``column=asc,column=desc``. Pure."""

import re
from dataclasses import dataclass

from determined.errors import BadRequest

MAX_SORT_COLUMNS = 10
_PART = re.compile(r"(.+?)=(asc|desc)(?:,|$)", re.S)


@dataclass(frozen=True)
class By:
    column: str
    descending: bool


def parse(text: str | None) -> list[By]:
    """Names may have commas and equals signs in them: a part ends at ``=asc`` or ``=desc``."""
    if not text:
        return []
    found: list[By] = []
    place = 0
    while place < len(text):
        match = _PART.match(text, place)
        if match is None:
            raise BadRequest(f"cannot sort by {text[place : place + 100]!r}: column=asc or column=desc is needed")
        if match[1] not in (by.column for by in found):
            found.append(By(match[1], match[2] == "desc"))
        place = match.end()
    if len(found) > MAX_SORT_COLUMNS:
        raise BadRequest(f"lists can be sorted by {MAX_SORT_COLUMNS} columns at most")
    return found
