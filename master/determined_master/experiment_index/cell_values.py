"""Indexed values of an experiment: hyperparameters, metrics and scalars of its configuration. Pure."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from determined.hyperparameter_tree import is_group
from determined_master.experiment_index.column_names import MAX_NAME_LENGTH, Kind, Type
from determined_master.json_numbers import inward, number
from determined_master.metrics.summary import GROUP_KEYS

MAX_TEXT_LENGTH = 1000
MAX_NAMES = 10_000
"""Limit for one experiment: a trial with a new name at each step must not fill the database."""
_GROUPS = {key: group for group, key in GROUP_KEYS.items()}
_WORDS = {True: "true", False: "false"}
_RANK: dict[Type, int] = {"boolean": 0, "number": 1, "text": 2}

Key = tuple[Kind, str]


@dataclass(frozen=True, slots=True)
class Value:
    """A value as in ``column_values``."""

    number: float | None = None
    text: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    mean: float | None = None

    @property
    def type(self) -> Type:
        if self.number is None:
            return "number" if self.text in (None, "NaN") else "text"
        return "number" if self.text is None else "boolean"


def wider(first: Type, second: Type) -> Type:
    """Returns the type that fits both."""
    return max(first, second, key=_RANK.__getitem__)


def of_experiment(
    config: Mapping[str, Any], hparams: Mapping[str, Any] | None, summary: Mapping[str, Any]
) -> dict[Key, Value]:
    """Returns the indexed values. ``hparams``: of the trial whose values are shown; without one, the constants of the
    configuration."""
    constants = _constants(config.get("hyperparameters") or {}) if hparams is None else hparams
    scalars = {key: value for key, value in config.items() if key != "hyperparameters"}
    values: dict[Key, Value] = {}
    for path, leaf in _leaves(constants, "hp"):
        _put(values, ("hyperparameter", path), scalar(leaf, lists=True))
    for path, leaf in _leaves(scalars, "config"):
        _put(values, ("config", path), scalar(leaf))
    for key, metrics in summary.items():
        for name, entry in metrics.items():
            _put(values, ("metric", f"{_GROUPS.get(key, key)}.{name}"), _metric(entry))
    return values


def scalar(value: object, *, lists: bool = False) -> Value | None:
    """Returns None for what a column cannot hold."""
    if isinstance(value, bool):
        return Value(float(value), _WORDS[value])
    if isinstance(value, int | float):
        return _figure(value)
    if isinstance(value, str):
        return Value(text=_cut(value))
    if lists and isinstance(value, list):
        return Value(text=_cut(msgspec.json.encode(value).decode()))
    return None


def cell(value: Value) -> float | str | bool | None:
    """Returns the value as lists show it."""
    if value.number is None or value.text is None:
        return value.text if value.number is None else value.number
    return value.text == "true"


def _metric(entry: Mapping[str, Any]) -> Value | None:
    last = inward(entry.get("last"))
    shown = scalar(last)
    if shown is None and "mean" not in entry:
        return None
    shown = shown or Value()
    return Value(shown.number, shown.text, *(_finite(entry.get(name)) for name in ("min", "max", "mean")))


def _figure(value: float) -> Value:
    try:
        figure = float(value)
    except OverflowError:
        figure = math.inf if value > 0 else -math.inf
    return Value(text="NaN") if math.isnan(figure) else Value(figure)


def _finite(value: object) -> float | None:
    """Returns a finite number or None: sums may overflow although no report did."""
    figure = number(value)
    return figure if figure is not None and math.isfinite(figure) else None


def _cut(text: str) -> str:
    return text[:MAX_TEXT_LENGTH].replace("\0", "")


def _put(found: dict[Key, Value], key: Key, value: Value | None) -> None:
    if value is not None and len(key[1]) <= MAX_NAME_LENGTH and "\0" not in key[1] and len(found) < MAX_NAMES:
        found[key] = value


def _leaves(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        path = f"{prefix}.{key}"
        if isinstance(value, dict):
            yield from _leaves(value, path)
        elif value is not None:
            yield path, value


def _constants(hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the hyperparameters that the search does not vary."""
    values: dict[str, Any] = {}
    for name, value in hyperparameters.items():
        if not isinstance(value, dict):
            values[name] = value
        elif is_group(value):
            values[name] = _constants(value)
        elif value["type"] == "const":
            values[name] = value.get("val")
    return values
