"""Numbers in JSON: NaN and infinities are strings, in both directions."""

import math
import sys
from typing import Any, overload

_OUT = {math.inf: "Infinity", -math.inf: "-Infinity"}
_PLAIN = frozenset({float, int, bool})
"""Types of the values of nearly all reports, which need no look at each."""
_LARGEST = sys.float_info.max
_IN = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def is_plain(values: dict[str, Any]) -> bool:
    """Returns True if all values are booleans or numbers within the range of floats. Decoded from JSON, ``outward`` and
    ``inward`` leave them as they are: JSON has no other floats than finite ones."""
    for value in values.values():
        kind = type(value)
        if kind is not float and (kind not in _PLAIN or not -_LARGEST <= value <= _LARGEST):
            return False
    return True


@overload
def outward(value: dict[str, Any]) -> dict[str, Any]: ...
@overload
def outward(value: list[Any]) -> list[Any]: ...
@overload
def outward(value: float) -> float | str: ...
@overload
def outward(value: object) -> object: ...
def outward(value: object) -> object:
    """Returns the value with every float that JSON cannot carry as a string; shares unchanged parts."""
    if isinstance(value, dict) and _PLAIN.issuperset(map(type, value.values())) and _are_finite(value):
        return value
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else _OUT[value]
    if isinstance(value, dict):
        return {key: outward(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [outward(item) for item in value]
    return value


def _are_finite(values: dict[str, Any]) -> bool:
    try:
        return all(map(math.isfinite, values.values()))
    except OverflowError:  # an integer beyond the range of floats, which JSON can carry
        return False


@overload
def inward(value: dict[str, Any]) -> dict[str, Any]: ...
@overload
def inward(value: list[Any] | None) -> list[Any] | None: ...
@overload
def inward(value: object) -> object: ...
def inward(value: object) -> object:
    """The inverse of ``outward``, only for metrics: a string that spells such a float becomes a float."""
    if isinstance(value, dict) and _PLAIN.issuperset(map(type, value.values())):
        return value
    if isinstance(value, str):
        return _IN.get(value, value)
    if isinstance(value, dict):
        return {key: inward(item) for key, item in value.items()}
    if isinstance(value, list):
        return [inward(item) for item in value]
    return value


def number(value: object) -> float | None:
    """Returns a metric as float, NaN and infinities included; None for anything else. An integer beyond the range of
    floats is an infinity."""
    value = inward(value) if isinstance(value, str) else value
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
