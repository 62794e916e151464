"""Resolves every value of a composition, and finds what cannot be resolved."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from determined_workflows.hydra.composer import secrets
from determined_workflows.hydra.composer.origins import Key, find
from determined_workflows.hydra.composer.problems import Problem

REFERENCE = re.compile(r"\$\{\s*(\.*[A-Za-z_][\w.\[\]]*)\s*\}")


@dataclass(frozen=True)
class Value:
    """One resolved value with its origin. ``expression`` is the text with interpolations that gave it."""

    key: str
    value: Any
    origin: str
    expression: str | None = None


def read(config: Any, origins: dict[Key, str]) -> tuple[list[Value], list[Problem]]:  # noqa: ANN401  # OmegaConf's DictConfig
    """Returns the values of the application, and all problems: missing values, cycles, wrong references and types."""
    values, problems = [], []
    expressions = {path: node._value() for path, node, _ in _nodes(config, ()) if node._is_interpolation()}  # noqa: SLF001
    in_cycle: set[Key] = set()
    for path, node, parent in _nodes(config, ()):
        key, origin = ".".join(path), find(origins, path)
        if path in in_cycle:
            continue
        if node._is_missing():  # noqa: SLF001
            problems.append(Problem(f"{key}: a value is mandatory and missing (???; {origin})", f"set it: {key}=VALUE"))
            continue
        expression = expressions.get(path)
        try:
            value = plain(parent[path[-1]])
        except Exception as error:  # OmegaConf's, and whatever a resolver raises
            cycle = _cycle(path, expressions)
            if cycle:
                in_cycle.update(cycle)
                text = " -> ".join(".".join(each) for each in [*cycle, cycle[0]])
                problems.append(Problem(f"interpolation cycle: {text}", f"{key} is set in {origin}"))
            else:
                text = str(error).split("\n")[0]
                problems.append(
                    Problem(f"{key}: {text} ({origin})", f"the value is {expression}" if expression else None)
                )
            continue
        values.append(Value(key, value, origin, expression))
    hidden = {
        each.value for each in values if isinstance(each.value, str) and secrets.is_secret(each.key, each.expression)
    }
    hidden = {each for each in hidden if len(each) >= secrets.MIN_LENGTH}
    return [replace(each, value=secrets.without(each.value, hidden)) for each in values], problems


def _nodes(config: Any, above: Key) -> Iterator[tuple[Key, Any, Any]]:  # noqa: ANN401  # nodes of OmegaConf
    """Yields path, node and parent of each value; a list is one value."""
    from omegaconf import DictConfig

    for key in config:
        path = (*above, str(key))
        if path == ("hydra",):
            continue
        node = config._get_node(key)  # noqa: SLF001
        is_special = node._is_interpolation() or node._is_none() or node._is_missing()  # noqa: SLF001
        if isinstance(node, DictConfig) and not is_special and len(node):
            yield from _nodes(node, path)
        else:
            yield path, node, config


def _cycle(start: Key, expressions: dict[Key, Any]) -> list[Key] | None:
    """Returns the values that refer to each other in a circle that ``start`` leads to."""
    path: list[Key] = []

    def visit(key: Key) -> list[Key] | None:
        if key in path:
            return path[path.index(key) :]
        path.append(key)
        for reference in REFERENCE.findall(str(expressions.get(key) or "")):
            found = visit(absolute(reference, key))
            if found:
                return found
        path.pop()
        return None

    return visit(start)


def absolute(reference: str, key: Key) -> Key:
    """Returns the path of what a value refers to, which may be relative to the value's own."""
    dots = len(reference) - len(reference.lstrip("."))
    above = key[: len(key) - dots] if dots else ()
    return (*above, *filter(None, re.split(r"[.\[\]]", reference.lstrip("."))))


def plain(value: Any) -> Any:  # noqa: ANN401  # any value of a configuration
    """Returns a value as JSON knows it: the names of enums, the text of paths and of numbers like nan."""
    from omegaconf import OmegaConf

    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
    if isinstance(value, dict):
        return {_name(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _name(key: object) -> str:
    return key.name if isinstance(key, Enum) else str(key)
