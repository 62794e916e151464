"""Hyperparameters: constants, ranges, choices, and groups of them to any depth."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from determined.config.model import Model
from determined.hyperparameter_tree import is_group

PointCount = Annotated[int, Field(ge=1, le=2**31 - 1)] | None


class Const(Model):
    """A single value."""

    type: Literal["const"] = "const"
    val: Any


class Int(Model):
    """A whole number; both ends are included."""

    type: Literal["int"] = "int"
    minval: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    maxval: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    count: PointCount = None


class Double(Model):
    """A number; the upper end is excluded."""

    type: Literal["double"] = "double"
    minval: float
    maxval: float
    count: PointCount = None


class Log(Model):
    """A power of ``base`` with an exponent between ``minval`` and ``maxval``."""

    type: Literal["log"] = "log"
    minval: float
    maxval: float
    base: Annotated[float, Field(gt=0)] = 10.0
    count: PointCount = None


class Categorical(Model):
    """One of several values."""

    type: Literal["categorical"] = "categorical"
    vals: Annotated[list[Any], Field(min_length=1)]


TYPES: dict[str, type[Model]] = {
    "const": Const,
    "int": Int,
    "double": Double,
    "log": Log,
    "categorical": Categorical,
}


def normalise(section: Mapping[str, Any]) -> dict[str, Any]:
    """Returns every field of every hyperparameter; a plain value becomes a constant. Expects a checked section.

    >>> normalise({"lr": 0.1, "type": "adam"})
    {'lr': {'type': 'const', 'val': 0.1}, 'type': {'type': 'const', 'val': 'adam'}}
    """
    return {name: _normalised(part) for name, part in section.items()}


def _normalised(value: Any) -> dict[str, Any]:  # noqa: ANN401  # a value of a YAML document
    if is_group(value):
        return normalise(value)
    if not isinstance(value, dict):
        return {"type": "const", "val": value}
    return TYPES[value["type"]].model_validate(value).to_json()
