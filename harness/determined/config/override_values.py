"""Understands the value of ``--config key.path=value`` by the kind of field that it is for."""

import re
import types
import typing
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from determined.config import yaml_source
from determined.config.environment import Image
from determined.config.experiment import ExperimentConfig
from determined.config.model import Model

_NAMED = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*=")
_COLLECTION = ("[", "{")


def understood(keys: Sequence[str], text: str) -> Any:  # noqa: ANN401  # a value of a YAML document
    """Returns the value. A field of text takes the text as it is, a list may be given with commas, and a comma without
    ``NAME=`` behind it belongs to the value of an environment variable. Raises what ``read_value`` raises.

    >>> understood(["description"], "first, second"), understood(["labels"], "a,b")
    ('first, second', ['a', 'b'])
    """
    bare = text.strip()
    if not bare or (bare[0] == bare[-1] and bare[0] in ("'", '"') and len(bare) > 1):
        return yaml_source.read_value(text)
    kinds = list(_kinds(ExperimentConfig, keys))
    if list(keys[:2]) == ["environment", "environment_variables"]:
        return yaml_source.read_value(text) if bare.startswith(_COLLECTION) else _variables(bare)
    is_listed = any(typing.get_origin(kind) is list for kind in kinds)
    is_entrypoint = list(keys) == ["entrypoint"]  # its annotation is Any
    if str in kinds or Image in kinds or is_entrypoint:
        has_other_forms = is_listed or Image in kinds or is_entrypoint
        return yaml_source.read_value(text) if has_other_forms and bare.startswith(_COLLECTION) else text
    if list[str] in kinds and not bare.startswith("["):
        return [part.strip() for part in text.split(",")]
    if "," in text and not bare.startswith(_COLLECTION):
        return [yaml_source.read_value(part) for part in text.split(",")]
    return yaml_source.read_value(text)


def _variables(text: str) -> list[str]:
    names: list[str] = []
    for part in text.split(","):
        if names and not _NAMED.match(part.strip()):
            names[-1] += f",{part}"
        else:
            names.append(part.strip())
    return names


def _kinds(kind: Any, keys: Sequence[str]) -> Iterator[Any]:  # noqa: ANN401  # an annotation
    """Yields what the field may be: ``str``, ``list[str]``, a model; nothing for a field that is free or unknown."""
    origin = typing.get_origin(kind)
    if origin is Annotated:
        yield from _kinds(typing.get_args(kind)[0], keys)
    elif origin in (typing.Union, types.UnionType):
        for each in typing.get_args(kind):
            yield from _kinds(each, keys)
    elif not keys:
        if origin is typing.Literal and all(isinstance(each, str) for each in typing.get_args(kind)):
            yield str
        elif origin is list:
            item = typing.get_args(kind)[0]
            yield list[str] if str in _kinds(item, ()) else kind
        else:
            yield kind
    elif isinstance(kind, type) and issubclass(kind, Model) and keys[0] in kind.model_fields:
        yield from _kinds(kind.model_fields[keys[0]].annotation, keys[1:])
