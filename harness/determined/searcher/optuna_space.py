"""Hyperparameters of a configuration as Optuna's distributions, and Optuna's parameters as hyperparameters."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from determined.hyperparameter_tree import is_group

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Path = tuple[str, ...]


def distributions(hparams: Mapping[str, Any]) -> "dict[str, BaseDistribution]":
    """Returns the distribution of each range and choice, by its dotted name.

    A ``log`` is drawn by its exponent, evenly, as in the other searches. A choice is drawn by its index: Optuna knows
    numbers and texts only.

    >>> distributions({"rate": {"type": "log", "minval": -4, "maxval": -1}})
    {'rate': FloatDistribution(high=-1.0, log=False, low=-4.0, step=None)}
    >>> distributions({"net": {"size": {"type": "categorical", "vals": [[1, 2], [3]]}}})
    {'net.size': CategoricalDistribution(choices=(0, 1))}
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    spaces: dict[str, BaseDistribution] = {}
    for path, hparam in _leaves(hparams):
        kind = hparam["type"]
        if kind == "categorical":
            spaces[_name(path)] = CategoricalDistribution(range(len(hparam["vals"])))
        elif kind == "int":
            spaces[_name(path)] = IntDistribution(hparam["minval"], hparam["maxval"])
        elif kind in ("double", "log"):
            spaces[_name(path)] = FloatDistribution(hparam["minval"], hparam["maxval"])
    return spaces


def hparams_of(hparams: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one value for each hyperparameter.

    >>> hparams_of({"lr": {"type": "log", "minval": -4, "maxval": -1, "base": 10.0}, "net": {"size": {"type": "const",
    ...     "val": 7}}}, {"lr": -2.0})
    {'lr': 0.01, 'net': {'size': 7}}
    """
    values: dict[str, Any] = {}
    for path, hparam in _leaves(hparams):
        group = values
        for name in path[:-1]:
            group = group.setdefault(name, {})
        group[path[-1]] = _value(hparam, params.get(_name(path)))
    return values


def _leaves(hparams: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    for name in sorted(hparams):
        part = hparams[name]
        if is_group(part):
            yield from _leaves(part, (*path, name))
        else:
            yield (*path, name), part


def _name(path: Path) -> str:
    return ".".join(part.replace("\\", "\\\\").replace(".", "\\.") for part in path)


def _value(hparam: Mapping[str, Any], drawn: Any) -> Any:  # noqa: ANN401  # any hyperparameter
    kind = hparam["type"]
    if kind == "const":
        return hparam["val"]
    if kind == "categorical":
        return hparam["vals"][drawn]
    if kind == "int":
        return int(drawn)
    low, high = float(hparam["minval"]), float(hparam["maxval"])
    inside = math.nextafter(high, low) if drawn >= high else float(drawn)  # the upper end is excluded
    return inside if kind == "double" else float(hparam.get("base", 10.0)) ** inside
