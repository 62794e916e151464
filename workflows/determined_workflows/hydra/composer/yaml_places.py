"""Lines and columns of the keys of a YAML file."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any


@functools.cache
def _keys(file: str) -> dict[tuple[str, ...], tuple[int, int]]:
    import yaml  # the program also starts where Hydra, which brings it, is missing

    places: dict[tuple[str, ...], tuple[int, int]] = {}
    try:
        root = yaml.compose(
            Path(file).read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        )
    except (OSError, ValueError, yaml.YAMLError):
        return places
    pending: list[tuple[tuple[str, ...], yaml.Node | None]] = [((), root)]
    while pending:
        above, node = pending.pop()
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                path = (*above, *str(key.value).split("."))
                places[path] = _place(key)
                pending.append((path, value))
        elif isinstance(node, yaml.SequenceNode) and above == ("defaults",):
            pairs = (pair for entry in node.value if isinstance(entry, yaml.MappingNode) for pair in entry.value)
            for key, value in pairs:
                group = str(key.value).replace("override ", "").replace("optional ", "").strip(" /")
                places[f"defaults:{group.partition('@')[0]}={value.value}",] = _place(key)
    return places


def _place(node: Any) -> tuple[int, int]:  # noqa: ANN401  # a node of YAML
    return node.start_mark.line + 1, node.start_mark.column + 1


def find(file: str, path: tuple[str, ...]) -> tuple[int, int] | None:
    """Returns line and column of a key, of the nearest key above it, or None.

    ``("defaults:model=small",)`` is an entry of the defaults list.
    """
    keys = _keys(file)
    while path:
        if path in keys:
            return keys[path]
        path = path[:-1]
    return None
