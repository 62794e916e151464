"""How the parts that several workers bring become one checkpoint."""

import hashlib
from pathlib import Path
from typing import Any

from determined.core._distributed import DistributedContext


def merge_metadata(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """One dictionary of all; a key with two values is an error.

    >>> merge_metadata([{"a": {"b": 1}}, {"a": {"c": 2}}])
    {'a': {'b': 1, 'c': 2}}
    """
    result: dict[str, Any] = {}
    for part in parts:
        _merge(result, part, "")
    return result


def merge_resources(distributed: DistributedContext, folder: Path | None, names: list[str]) -> None:
    """Raises on every worker where the same file name comes with different content."""
    mine = {name: _digest(folder / name) for name in names} if folder is not None else {}
    seen: dict[str, str] = {}
    for part in distributed.allgather(mine):
        for name, digest in part.items():
            if seen.setdefault(name, digest) != digest:
                raise RuntimeError(f"two workers store different files under the same name: {name}")


def _merge(into: dict[str, Any], other: dict[str, Any], where: str) -> None:
    for key, value in other.items():
        if key not in into:
            into[key] = value
        elif isinstance(into[key], dict) and isinstance(value, dict):
            _merge(into[key], value, f"{where}{key}.")
        elif into[key] != value:
            raise ValueError(f"workers give different metadata for {where}{key}: {into[key]!r} and {value!r}")


def _digest(path: Path) -> str:
    if path.is_dir():
        return "folder"
    return hashlib.sha256(path.read_bytes()).hexdigest()
