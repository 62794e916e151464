"""Times of the API as ``datetime``."""

import re
from datetime import datetime

_FRACTION = re.compile(r"\.(\d{1,9})")


def parse_time(text: object) -> datetime | None:
    """Parses an RFC 3339 time; None for none.

    >>> parse_time("2026-01-02T03:04:05.123456789Z").isoformat()
    '2026-01-02T03:04:05.123456+00:00'
    """
    if not text:
        return None
    # Python 3.10 takes neither a Z nor a fraction of other than three or six digits.
    plain = _FRACTION.sub(lambda found: "." + found[1].ljust(6, "0")[:6], str(text))
    return datetime.fromisoformat(plain.replace("Z", "+00:00"))
