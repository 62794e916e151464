"""Parses durations: a number of seconds, or parts such as ``90s``, ``10m``, ``1h30m``, ``2d``."""

import math
import re

_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)\s*")
_SECONDS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Returns a duration in seconds. Raises ValueError with a text for users if it cannot be parsed.

    >>> parse_duration("1h30m"), parse_duration(" 10 ")
    (5400.0, 10.0)
    """
    rest, total, parts = text.strip().lower(), 0.0, 0
    while rest:
        match = _PART.match(rest)
        # a number without a unit is a duration by itself, not a part of one
        if match is None or (not match[2] and (parts or match.end() < len(rest))):
            raise ValueError(f"not a duration: {text!r}; write seconds, or 90s, 10m, 1h30m, 2d")
        total += float(match[1]) * _SECONDS[match[2]]
        parts, rest = parts + 1, rest[match.end() :]
    if not parts or not math.isfinite(total):
        raise ValueError(f"not a duration: {text!r}; write seconds, or 90s, 10m, 1h30m, 2d")
    return total
