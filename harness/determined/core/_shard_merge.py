"""Merges the parts that several workers save into one checkpoint."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined.core._all_ranks import ranks_text, run_on_all_ranks
from determined.core._distributed import DistributedContext
from determined.storage.hashes import digest

NOT_STORED = "the checkpoint was not stored"
_SHOWN = 5


@dataclass(frozen=True)
class Claim:
    """The files of one worker: name → size (folder names end with ``/``), and what tells the folder that has them.

    ``source``: machine, device and inode, or the rank for a folder of the worker alone. Workers with equal sources
    bring the same files.
    """

    files: Mapping[str, int]
    source: tuple[int, ...]


def merge_metadata(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merges dictionaries in rank order. A key with two different values is an error that names both ranks.

    >>> merge_metadata([{"a": {"b": 1}}, {"a": {"c": 2}}])
    {'a': {'b': 1, 'c': 2}}
    """
    result: dict[str, Any] = {}
    origins: dict[str, int] = {}
    for rank, part in enumerate(parts):
        _merge(result, part, "", rank, origins)
    return result


def settle(peers: DistributedContext, folder: Path, claims: Sequence[Claim]) -> tuple[list[str], dict[str, int]]:
    """Returns the names that this worker stores, and name → size of all files of the checkpoint.

    A name belongs to the lowest rank that has it. Raises RuntimeError on every worker if one name has different
    contents; contents are compared only if a name comes from several folders with the same size.
    """
    claim = claims[peers.rank]
    holders: dict[str, list[int]] = {}
    for rank, each in enumerate(claims):
        for name in each.files:
            holders.setdefault(name, []).append(rank)
    conflicts = _mixed_kinds(holders)
    doubtful = []
    for name, ranks in holders.items():
        if name.endswith("/") or len({claims[rank].source for rank in ranks}) == 1:
            continue
        if len({claims[rank].files[name] for rank in ranks}) > 1:
            conflicts.append((name, ranks))
        else:
            doubtful.append(name)
    digests = run_on_all_ranks(
        peers, NOT_STORED, lambda: {name: digest(folder / name) for name in doubtful if name in claim.files}
    )
    for name in doubtful:
        if len({digests[rank][name] for rank in holders[name]}) > 1:
            conflicts.append((name, holders[name]))
    if conflicts:
        shown = "; ".join(f"{name} ({ranks_text(ranks)})" for name, ranks in sorted(conflicts)[:_SHOWN])
        more = f" and {len(conflicts) - _SHOWN} more" if len(conflicts) > _SHOWN else ""
        raise RuntimeError(f"{NOT_STORED}: workers have different content for the same file name: {shown}{more}")
    mine = [name for name in sorted(claim.files) if holders[name][0] == peers.rank]
    return mine, {name: claims[ranks[0]].files[name] for name, ranks in holders.items()}


def _mixed_kinds(holders: Mapping[str, list[int]]) -> list[tuple[str, list[int]]]:
    """Returns the names that are a file on one worker and a folder on another."""
    folders: dict[str, list[int]] = {}
    for name, ranks in holders.items():
        parts = name.rstrip("/").split("/")
        for count in range(1, len(parts) + name.endswith("/")):
            folders.setdefault("/".join(parts[:count]), []).extend(ranks)
    return [(name, sorted({*ranks, *folders[name]})) for name, ranks in holders.items() if name in folders]


def _merge(into: dict[str, Any], other: Mapping[str, Any], where: str, rank: int, origins: dict[str, int]) -> None:
    for key, value in other.items():
        path = f"{where}{key}"
        if key not in into:
            origins[path] = rank
            into[key] = {} if isinstance(value, Mapping) else value
            if isinstance(value, Mapping):
                _merge(into[key], value, f"{path}.", rank, origins)
        elif isinstance(into[key], dict) and isinstance(value, Mapping):
            _merge(into[key], value, f"{path}.", rank, origins)
        elif into[key] != value and _text(into[key]) != _text(value):
            raise ValueError(
                f"workers have different metadata for {path}: "
                f"{into[key]!r} (rank {origins[path]}) and {value!r} (rank {rank})"
            )


def _text(value: object) -> str:
    """Returns the JSON that is stored: not a number is not equal to itself, but is the same metadata."""
    return json.dumps(value, sort_keys=True, default=repr)
