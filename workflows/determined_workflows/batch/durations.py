"""Time limits and sizes in the forms that Slurm accepts."""

import re

_LIMIT = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?\Z")
_NO_LIMIT = ("UNLIMITED", "INFINITE", "NONE")
_SIZE = re.compile(r"\d+[KMGT]?B?\Z", re.IGNORECASE)


def seconds(text: str) -> int | None:
    """Returns the seconds of a time limit, or None if it is unlimited. Raises ValueError for anything else.

    >>> seconds("00-01:00:00"), seconds("90"), seconds("2:30"), seconds("1-12")
    (3600, 5400, 150, 129600)
    """
    if text.upper() in _NO_LIMIT:
        return None
    match = _LIMIT.match(text)
    if not match:
        raise ValueError(text)
    first, second, third = (int(match[name] or 0) for name in ("first", "second", "third"))
    if match["days"] is not None:
        return int(match["days"]) * 86400 + first * 3600 + second * 60 + third
    if match["third"] is not None:
        return first * 3600 + second * 60 + third
    return first * 60 + second


def is_size(text: str) -> bool:
    """Returns True for an amount of memory.

    >>> is_size("10G"), is_size("512"), is_size("10X")
    (True, True, False)
    """
    return _SIZE.match(text) is not None
