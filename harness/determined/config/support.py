"""What a configuration may name and this version does not have yet: refused, or accepted with a warning.

A feature that is implemented loses its row here.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from determined.config.diagnostics import Path, render_path
from determined.config.findings import Finding

Test = Callable[[Any], bool]


@dataclass(frozen=True)
class Unsupported:
    """A key whose value has no effect yet. ``applies`` is True for values that ask for one."""

    path: Path
    instead: str
    applies: Test = bool


def _differs_from(default: object) -> Test:
    return lambda value: value != default


def _is_not_environment(value: object) -> bool:
    """Returns True for a container image; ``venv:PATH`` names a Python environment."""
    names = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(name, str) and not name.startswith("venv:") for name in names)


REFUSED_STORAGES = {
    "s3": "mount the bucket as a folder on every machine and use shared_fs",
    "gcs": "mount the bucket as a folder on every machine and use shared_fs",
    "azure": "mount the container as a folder on every machine and use shared_fs",
}
"""Checkpoint storages that are not implemented yet, and what to use instead."""
REMOVED_STORAGES = {"hdfs": "mount the file system as a folder on every machine and use shared_fs"}

_BY_HAND = "delete checkpoints by hand, or with the experiment"
WARNED = (
    Unsupported(("checkpoint_storage", "save_experiment_best"), f"all checkpoints are kept; {_BY_HAND}"),
    Unsupported(("checkpoint_storage", "save_trial_best"), f"all checkpoints are kept; {_BY_HAND}", _differs_from(1)),
    Unsupported(("checkpoint_storage", "save_trial_latest"), f"all checkpoints are kept; {_BY_HAND}", _differs_from(1)),
    Unsupported(("checkpoint_storage", "checkpoint_path"), 'use "storage_path"'),
    Unsupported(("checkpoint_storage", "tensorboard_path"), "metrics are drawn on the web page"),
    Unsupported(("resources", "max_slots"), 'limit "searcher.max_concurrent_trials"', lambda value: value is not None),
    Unsupported(("resources", "weight"), 'use "priority"', _differs_from(1)),
    Unsupported(("resources", "shm_size"), "tasks are processes with the machine's own shared memory"),
    Unsupported(("resources", "devices"), "tasks are processes and see the devices of the machine"),
    Unsupported(("environment", "image"), "tasks run as processes; venv:PATH selects a Python", _is_not_environment),
    Unsupported(("environment", "force_pull_image"), "no images are pulled yet"),
    Unsupported(("environment", "registry_auth"), "no images are pulled yet"),
    Unsupported(("environment", "add_capabilities"), "tasks have the rights of the user who started the agent"),
    Unsupported(("environment", "drop_capabilities"), "tasks have the rights of the user who started the agent"),
    Unsupported(("environment", "pod_spec"), "there is no Kubernetes resource manager"),
    Unsupported(("environment", "proxy_ports"), "the port can be reached on the machine itself only"),
    Unsupported(("environment", "ports"), "the task finds free ports by itself"),
    Unsupported(("profiling", "begin_on_batch"), "profiling lasts from the start to the end of the trial"),
    Unsupported(("profiling", "end_after_batch"), "profiling lasts from the start to the end of the trial"),
    Unsupported(("log_policies",), "restarts are limited by max_restarts alone"),
    Unsupported(("retention_policy", "log_retention_days"), "logs are kept until the experiment is deleted"),
    Unsupported(("integrations",), "there are no webhooks and no Pachyderm data sets"),
    Unsupported(("slurm",), "there is no Slurm resource manager"),
    Unsupported(("pbs",), "there is no PBS resource manager"),
)


def check(own: Mapping[str, Any], merged: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields an error for each feature without which the experiment cannot run, and a warning for each other one.

    Args:
        own: the submitted configuration. Only its values are warned about: its author did not write the defaults.
        merged: the same with the defaults of the cluster.
    """
    yield from _storage(merged)
    for row in WARNED:
        value = _value_at(own, row.path)
        if value is not None and row.applies(value):
            message = f'"{render_path(row.path)}" has no effect yet'
            yield Finding("W503", row.path, message, row.instead, "key", "warning")


def _storage(merged: Mapping[str, Any]) -> Iterator[Finding]:
    storage = merged.get("checkpoint_storage")
    kind = storage.get("type") if isinstance(storage, dict) else None
    path: Path = ("checkpoint_storage", "type")
    if kind in REFUSED_STORAGES:
        yield Finding("E403", path, f'checkpoint storage "{kind}" is not supported yet', REFUSED_STORAGES[kind])
    elif kind in REMOVED_STORAGES:
        yield Finding("E402", path, f'checkpoint storage "{kind}" is no longer supported', REMOVED_STORAGES[kind])


def _value_at(config: Mapping[str, Any], path: Path) -> Any:  # noqa: ANN401  # a value of a YAML document
    value: Any = config
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value
