"""The values of compositions as hyperparameters: what all jobs share, and what each job has of its own."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from determined_workflows.hydra.composer.secrets import without_in_override
from determined_workflows.hydra.composition import Job

OF_JOB = "hydra"
"""Name of the group that identifies the job; Hydra keeps this name for itself, so that no application uses it."""
_RANGE_KEY = "type"


def split(jobs: Sequence[Job]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the hyperparameters that all jobs share, and those of each job.

    A list search runs each set of the second over the first.
    """
    leaves = [_leaves(job) for job in jobs]
    first = leaves[0]
    shared = {
        key: value for key, value in first.items() if all(key in each and _is_same(each[key], value) for each in leaves)
    }
    own = []
    for number, (job, values) in enumerate(zip(jobs, leaves, strict=True)):
        tree = _tree({key: value for key, value in values.items() if key not in shared})
        own.append(tree | {OF_JOB: {"job": number, "overrides": " ".join(map(without_in_override, job.overrides))}})
    return _tree(shared), own


def _is_same(first: object, second: object) -> bool:
    """Compares as text: for Python, true is equal to 1."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)


def _leaves(job: Job) -> dict[tuple[str, ...], Any]:
    """A mapping with a key ``type`` is one value: in a configuration of an experiment that key declares a range.

    At the top, where all hyperparameters would be one value, it becomes ``_type``.
    """
    paths = {tuple(_top_name(key).split(".")): value for key, value in job.config.items()}
    ranges = {path[: path.index(_RANGE_KEY)] for path in paths if _RANGE_KEY in path[1:]}
    leaves: dict[tuple[str, ...], Any] = {}
    for path, value in paths.items():
        above = next((path[:length] for length in range(1, len(path)) if path[:length] in ranges), None)
        if above is None:
            leaves[path] = value
        else:
            _put(leaves.setdefault(above, {}), path[len(above) :], value)
    return leaves


def _top_name(key: str) -> str:
    return f"_{key}" if key.partition(".")[0] == _RANGE_KEY else key


def _tree(leaves: Mapping[tuple[str, ...], Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, value in leaves.items():
        _put(tree, path, {"type": "const", "val": value} if isinstance(value, Mapping) else value)
    return tree


def _put(tree: dict[str, Any], path: Sequence[str], value: object) -> None:
    for key in path[:-1]:
        tree = tree.setdefault(key, {})
    tree[path[-1]] = value
