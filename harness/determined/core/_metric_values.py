"""Converts metric values to plain Python: numbers, strings, and lists and dictionaries of them."""

import logging
import numbers
from collections.abc import Mapping
from typing import Any, SupportsFloat

logger = logging.getLogger(__name__)


def plain(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the metrics as plain values. Bytes are dropped with a warning.

    >>> plain({"loss": 0.5, "layers": {1: [1, 2]}})
    {'loss': 0.5, 'layers': {'1': [1, 2]}}
    """
    result: dict[str, Any] = {}
    for key, value in metrics.items():
        if isinstance(value, (bytes, bytearray)):
            logger.warning("metric %r is not reported because its value is of type bytes", key)
        else:
            result[str(key)] = plain_value(value)
    return result


def plain_value(value: Any) -> Any:  # noqa: ANN401  # values of any library, known by their methods
    """Returns one value as plain Python.

    A tensor or array with one element, of any shape, becomes a number; a larger one becomes a nested list. Other
    numbers (``Decimal``, ``Fraction``) become floats. Any other value is returned unchanged.
    """
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, Mapping):
        return plain(value)
    if isinstance(value, (list, tuple)):
        return [plain_value(item) for item in value]
    if hasattr(value, "tolist"):
        return plain_value(value.item() if _count(value) == 1 else value.tolist())
    if hasattr(value, "numpy"):  # tensors of TensorFlow
        return plain_value(value.numpy())
    if hasattr(value, "item"):
        return plain_value(value.item())
    if (
        isinstance(value, numbers.Number)
        and isinstance(value, SupportsFloat)
        and not isinstance(value, (int, float, complex))
    ):
        return float(value)
    return value


def check_sendable(metrics: Mapping[str, Any]) -> None:
    """Raises TypeError with the metric's name for the first value that has no JSON form."""
    for key, value in metrics.items():
        found = _unsendable(value)
        if found is not None:
            raise TypeError(
                f"metric {key!r} holds a {type(found).__name__}, which cannot be reported; a metric is a "
                "number, a string, or a list or dictionary of them"
            )


def _unsendable(value: object) -> object:
    if isinstance(value, dict):
        return next((found for item in value.values() if (found := _unsendable(item)) is not None), None)
    if isinstance(value, list):
        return next((found for item in value if (found := _unsendable(item)) is not None), None)
    return None if value is None or isinstance(value, (bool, int, float, str)) else value


def _count(value: object) -> int | None:
    """Returns the number of elements: ``numel()`` of torch tensors, ``size`` of numpy arrays and similar types."""
    numel = getattr(value, "numel", None)
    count = numel() if callable(numel) else getattr(value, "size", None)
    return count if isinstance(count, int) else None
