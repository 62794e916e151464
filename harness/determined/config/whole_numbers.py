"""Takes ``2.0`` and ``1e3`` as whole numbers in the fields of a configuration that hold one."""

import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any

from determined.config.hyperparameters import TYPES
from determined.config.model import Model, Takes
from determined.hyperparameter_tree import is_group

MAX = 2**64
"""Larger numbers are beyond the bounds of every field."""
FREE = "hyperparameters"


def with_whole_numbers(data: Mapping[str, Any], model: type[Model]) -> dict[str, Any]:
    """Returns an unchecked configuration in which whole numbers are integers. What has a fraction stays as it is.

    >>> from determined.config.experiment import ExperimentConfig
    >>> with_whole_numbers({"max_restarts": 2.0, "scheduling_unit": 2.5, "data": {"a": 2.0}}, ExperimentConfig)
    {'max_restarts': 2, 'scheduling_unit': 2.5, 'data': {'a': 2.0}}
    """
    converted: dict[str, Any] = _converted(data, (model,))
    hyperparameters = converted.get(FREE)
    if FREE in model.model_fields and isinstance(hyperparameters, dict):
        converted[FREE] = _hyperparameters(hyperparameters)
    return converted


def _hyperparameters(group: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _hyperparameter(part) for name, part in group.items()}


def _hyperparameter(value: Any) -> Any:  # noqa: ANN401  # a value of a YAML document
    if is_group(value):
        return _hyperparameters(value)
    kind = value.get("type") if isinstance(value, dict) else None
    return _converted(value, (TYPES[kind],)) if isinstance(kind, str) and kind in TYPES else value


def _converted(value: Any, kinds: tuple[Any, ...]) -> Any:  # noqa: ANN401  # a value of a YAML document
    """``kinds``: the annotations that the value may have."""
    if isinstance(value, float):
        is_meant = int in kinds and float not in kinds and value.is_integer() and abs(value) < MAX
        return int(value) if is_meant else value
    if isinstance(value, list):
        items = tuple(
            item for kind in kinds if typing.get_origin(kind) is list for item in _kinds(*typing.get_args(kind))
        )
        return [_converted(each, items) for each in value] if items else value
    if not isinstance(value, dict):
        return value
    values = [_kinds(typing.get_args(kind)[1]) for kind in kinds if typing.get_origin(kind) is dict]
    if values:
        return {key: _converted(part, values[0]) for key, part in value.items()}
    # The members of a union have the same kind of number under the same name.
    fields = {
        name: _kinds(field.annotation, *field.metadata)
        for kind in kinds
        if isinstance(kind, type) and issubclass(kind, Model)
        for name, field in kind.model_fields.items()
    }
    return {key: _converted(part, fields.get(key, ())) for key, part in value.items()}


def _kinds(annotation: Any, *metadata: Any) -> tuple[Any, ...]:  # noqa: ANN401  # an annotation
    """Returns the members of an annotation: those that a validator says it takes, or those of its own."""
    if typing.get_origin(annotation) is Annotated:
        inner, *of_inner = typing.get_args(annotation)
        return _kinds(inner, *of_inner)
    for each in metadata:
        if isinstance(each, Takes):
            return each.kinds
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(member for part in typing.get_args(annotation) for member in _kinds(part))
    return (annotation,)
