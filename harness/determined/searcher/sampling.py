"""Values of hyperparameters: random samples, or every point of a grid. Pure; expects a checked configuration."""

import math
import random
from collections.abc import Mapping
from typing import Any

from determined.hyperparameter_tree import is_group


def sample(hparams: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """Returns one value for each hyperparameter.

    Draws in sorted order of the names, so that a seed determines the values.

    >>> sample({"lr": {"type": "const", "val": 0.1}, "net": {"width": 8}}, random.Random(0))
    {'lr': 0.1, 'net': {'width': 8}}
    """
    return {name: _draw(hparams[name], rng) for name in sorted(hparams)}


def _draw(hparam: object, rng: random.Random) -> object:
    if not isinstance(hparam, Mapping):
        return hparam
    if is_group(hparam):
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
    """Returns a number in [low, high): rounding must not reach the upper end, and distant ends must not overflow."""
    value = low * (1.0 - share) + high * share
    return float(value) if low <= value < high else float(low)


def first_point(hparams: Mapping[str, Any], searcher: Mapping[str, Any], rng: random.Random) -> dict[str, Any]:
    """Returns the hyperparameters of the first trial for runs of one trial: the first of a list, or a sample."""
    return listed_point(hparams, searcher["trials"][0]) if searcher["name"] == "list" else sample(hparams, rng)


def listed_point(hparams: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one set of a list search: ``values`` over the constants of ``hparams``, group by group.

    >>> listed_point({"lr": {"type": "const", "val": 0.1}, "net": {"width": 8, "depth": 2}}, {"net": {"depth": 3}})
    {'lr': 0.1, 'net': {'depth': 3, 'width': 8}}
    """
    point: dict[str, Any] = {}
    for name in sorted(hparams.keys() | values.keys()):
        below, value = hparams.get(name, {}), values.get(name)
        if name not in values:
            point[name] = _constant(below)
        elif isinstance(value, Mapping) and not _is_constant(value):
            point[name] = listed_point(below if is_group(below) else {}, value)
        else:
            point[name] = value["val"] if isinstance(value, Mapping) else value
    return point


def _constant(hparam: object) -> object:
    """Returns the value of a constant, or of a group of constants."""
    if not isinstance(hparam, Mapping):
        return hparam
    return listed_point(hparam, {}) if is_group(hparam) else hparam["val"]


def _is_constant(value: Mapping[str, Any]) -> bool:
    """Returns True for a value that is written as a hyperparameter; any other mapping is a group of values."""
    return value.get("type") == "const" and "val" in value


def grid_point(hparams: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Returns the point at ``index`` of the grid without making the others.

    The first name in sorted order changes slowest.

    >>> grid_point({"a": {"type": "categorical", "vals": [1, 2]}, "b": {"type": "const", "val": 0}}, 1)
    {'a': 2, 'b': 0}
    """
    digits: dict[str, Any] = {}
    for name in sorted(hparams, reverse=True):
        index, digit = divmod(index, _axis_size(hparams[name]))
        digits[name] = _axis_value(hparams[name], digit)
    if index:
        raise IndexError("the grid has fewer points")
    return {name: digits[name] for name in sorted(digits)}


def grid_size(hparams: Mapping[str, Any]) -> int:
    """Returns the number of points of the grid without generating them."""
    return math.prod(_axis_size(hparam) for hparam in hparams.values())


def _axis_size(hparam: object) -> int:
    if not isinstance(hparam, Mapping):
        return 1
    if is_group(hparam):
        return grid_size(hparam)
    kind = hparam["type"]
    if kind == "categorical":
        return len(hparam["vals"])
    if kind == "int":
        return int(min(hparam["count"], hparam["maxval"] - hparam["minval"] + 1))
    return int(hparam["count"]) if kind in ("double", "log") else 1


def _axis_value(hparam: object, index: int) -> object:
    if not isinstance(hparam, Mapping):
        return hparam
    if is_group(hparam):
        return grid_point(hparam, index)
    kind = hparam["type"]
    if kind == "const":
        return hparam["val"]
    if kind == "categorical":
        return hparam["vals"][index]
    low, high, count = hparam["minval"], hparam["maxval"], hparam["count"]
    if kind == "int":
        return _whole_point(low, high, min(count, high - low + 1), index)
    point = _point(low, high, count, index)
    return point if kind == "double" else float(hparam.get("base", 10.0)) ** point


def _point(low: float, high: float, count: int, index: int) -> float:
    """Returns one of ``count`` evenly spaced points that include both ends; a single point is the middle."""
    if count == 1:
        return low / 2 + high / 2
    share = index / (count - 1)
    return float(low) if share == 0 else float(high) if share == 1 else low * (1 - share) + high * share


def _whole_point(low: int, high: int, count: int, index: int) -> int:
    """Returns :func:`_point` in whole numbers, halves rounded away from zero; exact beyond the range of floats."""
    if count == 1:
        return _rounded(low + high, 2)
    return _rounded(low * (count - 1) + (high - low) * index, count - 1)


def _rounded(numerator: int, denominator: int) -> int:
    quotient, rest = divmod(abs(numerator), denominator)
    quotient += 2 * rest >= denominator
    return quotient if numerator >= 0 else -quotient
