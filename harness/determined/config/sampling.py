"""Values for hyperparameters: drawn at random, or every point of a grid. Pure; expects a checked configuration."""

import itertools
import random
from collections.abc import Mapping
from typing import Any


def sample(hparams: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """One value for each hyperparameter, drawn in sorted order of the names so that a seed always means the same.

    >>> sample({"lr": {"type": "const", "val": 0.1}, "net": {"width": 8}}, random.Random(0))
    {'lr': 0.1, 'net': {'width': 8}}
    """
    return {name: _draw(hparams[name], rng) for name in sorted(hparams)}


def _draw(hparam: Any, rng: random.Random) -> Any:
    if not isinstance(hparam, Mapping):
        return hparam
    if "type" not in hparam:
        return sample(hparam, rng)
    kind = hparam["type"]
    if kind == "const":
        return hparam["val"]
    if kind == "categorical":
        return rng.choice(hparam["vals"])
    low, high = hparam["minval"], hparam["maxval"]
    if kind == "int":
        return rng.randint(low, high)
    value = _between(low, high, rng.random())
    return value if kind == "double" else float(hparam.get("base", 10.0)) ** value


def _between(low: float, high: float, share: float) -> float:
    """In [low, high): rounding may neither reach the upper end nor overflow for far ends."""
    value = low * (1.0 - share) + high * share
    return float(value) if low <= value < high else float(low)


def grid(hparams: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination; the first name in sorted order changes slowest.

    >>> grid({"a": {"type": "categorical", "vals": [1, 2]}, "b": {"type": "int", "minval": 0, "maxval": 9, "count": 2}})
    [{'a': 1, 'b': 0}, {'a': 1, 'b': 9}, {'a': 2, 'b': 0}, {'a': 2, 'b': 9}]
    """
    names = sorted(hparams)
    axes = [_axis(hparams[name]) for name in names]
    return [dict(zip(names, point, strict=True)) for point in itertools.product(*axes)]


def grid_size(hparams: Mapping[str, Any]) -> int:
    """How many points :func:`grid` has, without making them."""
    size = 1
    for hparam in hparams.values():
        if isinstance(hparam, Mapping) and "type" not in hparam:
            size *= grid_size(hparam)
        elif isinstance(hparam, Mapping) and hparam["type"] == "int":
            size *= min(hparam["count"], hparam["maxval"] - hparam["minval"] + 1)
        elif isinstance(hparam, Mapping) and hparam["type"] in ("double", "log"):
            size *= hparam["count"]
        elif isinstance(hparam, Mapping) and hparam["type"] == "categorical":
            size *= len(hparam["vals"])
    return size


def _axis(hparam: Any) -> list[Any]:
    if not isinstance(hparam, Mapping):
        return [hparam]
    if "type" not in hparam:
        return list(grid(hparam))
    kind = hparam["type"]
    if kind == "const":
        return [hparam["val"]]
    if kind == "categorical":
        return list(hparam["vals"])
    low, high, count = hparam["minval"], hparam["maxval"], hparam["count"]
    if kind == "int":
        return _whole_points(low, high, min(count, high - low + 1))
    points = _points(low, high, count)
    return points if kind == "double" else [float(hparam.get("base", 10.0)) ** point for point in points]


def _points(low: float, high: float, count: int) -> list[float]:
    """Evenly spaced with both ends; one point is the middle."""
    if count == 1:
        return [low / 2 + high / 2]
    shares = (index / (count - 1) for index in range(count))
    return [
        float(low) if share == 0 else float(high) if share == 1 else low * (1 - share) + high * share
        for share in shares
    ]


def _whole_points(low: int, high: int, count: int) -> list[int]:
    """As :func:`_points` in whole numbers, halves away from zero; exact beyond what a float can hold."""
    if count == 1:
        return [_rounded(low + high, 2)]
    return [_rounded(low * (count - 1) + (high - low) * index, count - 1) for index in range(count)]


def _rounded(numerator: int, denominator: int) -> int:
    quotient, rest = divmod(abs(numerator), denominator)
    quotient += 2 * rest >= denominator
    return quotient if numerator >= 0 else -quotient
