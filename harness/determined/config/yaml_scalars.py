"""Plain YAML scalars as the master's users expect them: YAML 1.1, but ``1e-3`` is a number and a date is a text."""

import re

_NULL = {"", "~", "null", "Null", "NULL"}
_TRUE = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}
_FALSE = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*)\Z", re.ASCII)
_BASED = re.compile(r"[-+]?0(x[0-9a-fA-F_]+|o[0-7_]+|b[01_]+|[0-7_]+)\Z", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9]+)?\Z", re.ASCII)
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z", re.ASCII)

MAX_DIGITS = 300  # beyond any number that a configuration can mean; int() itself refuses at 4300


def resolve(text: str) -> bool | int | float | str | None:
    """Returns the value of an unquoted scalar. Raises ValueError for a number without a finite value.

    >>> resolve("1e-3"), resolve("2026-01-01"), resolve("yes"), resolve("0x10")
    (0.001, '2026-01-01', True, 16)
    """
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _SPECIAL.match(text):
        raise ValueError(f"{text} is not a finite number")
    if _DECIMAL.match(text) or _BASED.match(text) or _FLOAT.match(text):
        return number(text)
    return text


def number(text: str) -> int | float:
    """Returns an int or float in any of YAML's spellings. Raises ValueError for anything else."""
    if len(text) > MAX_DIGITS:
        raise ValueError("the number has too many digits")
    digits = text.replace("_", "")
    if _DECIMAL.match(text):
        return int(digits)
    if _BASED.match(text):
        return _based(digits)
    if not _FLOAT.match(text):
        raise ValueError(f"{text} is not a finite number")
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is not a finite number")
    return value


def _based(digits: str) -> int:
    sign = -1 if digits.startswith("-") else 1
    digits = digits.lstrip("+-")
    for prefix, base in (("0x", 16), ("0o", 8), ("0b", 2)):
        if digits.startswith(prefix):
            return sign * int(digits[2:], base)
    return sign * int(digits, 8)
