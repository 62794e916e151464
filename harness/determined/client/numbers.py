"""Converts NaN and infinities to the strings that the API uses inside metric maps, and back."""

import math
from typing import Any

_NAMES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def to_wire(value: object) -> Any:  # noqa: ANN401  # decoded JSON, which the caller checks
    """Returns a copy in which every float can be written as JSON.

    >>> to_wire({"a": [float("nan"), 1.5]})
    {'a': ['NaN', 1.5]}
    """
    if isinstance(value, float):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, dict):
        return {key: to_wire(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_wire(item) for item in value]
    return value


def from_wire(value: object) -> Any:  # noqa: ANN401  # decoded JSON, which the caller checks
    """Reverts :func:`to_wire`.

    >>> from_wire({"a": "-Infinity"})
    {'a': -inf}
    """
    if isinstance(value, str):
        return _NAMES.get(value, value)
    if isinstance(value, dict):
        return {key: from_wire(item) for key, item in value.items()}
    if isinstance(value, list):
        return [from_wire(item) for item in value]
    return value
