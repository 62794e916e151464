"""What a configuration may name and this version does not have yet: refused, or accepted with a warning.

A feature that is implemented loses its row here.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
    when: str = "yet"


def _is_not_environment(value: object) -> bool:
    """Returns True for a container image; ``venv:PATH`` names a Python environment."""
    names = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(name, str) and not name.startswith("venv:") for name in names)


REMOVED_STORAGES = {"hdfs": "mount the file system as a folder on every machine and use shared_fs"}

PROXY_KEYS = {
    "unauthenticated": "the task's owner and admins alone open the port: who reaches it acts as the owner",
}
"""Keys of a port that have no effect, and what holds instead."""
_INSTEAD_OF_POD = (
    "use environment.image, environment_variables, add_capabilities and drop_capabilities, resources.shm_size and "
    "devices, and bind_mounts"
)
_OF_A_POOL = "here: options of Slurm belong to the pool"
WARNED = (
    Unsupported(("checkpoint_storage", "checkpoint_path"), 'use "storage_path"'),
    Unsupported(("checkpoint_storage", "tensorboard_path"), "metrics are drawn on the web page"),
    Unsupported(("profiling", "begin_on_batch"), "profiling lasts from the start to the end of the trial"),
    Unsupported(("profiling", "end_after_batch"), "profiling lasts from the start to the end of the trial"),
    Unsupported(("retention_policy", "log_retention_days"), "logs are kept until the experiment is deleted"),
    Unsupported(("integrations",), "there are no webhooks and no Pachyderm data sets"),
    *(
        Unsupported(("slurm", name), instead, when=_OF_A_POOL)
        for name, instead in (
            ("slots_per_node", 'the provider of a pool of type slurm has "slots_per_agent"'),
            ("gpu_type", 'the provider of a pool of type slurm has "sbatch: {gpus-per-node: TYPE:NUMBER}"'),
            ("sbatch_args", 'the provider of a pool of type slurm has "sbatch: {LONG-OPTION: VALUE}"'),
        )
    ),
    Unsupported(("pbs",), "there is no PBS resource manager"),
)

WARNED_WITHOUT_CONTAINERS = (
    Unsupported(("resources", "shm_size"), "tasks are processes with the machine's own shared memory"),
    Unsupported(("resources", "devices"), "tasks are processes and see the devices of the machine"),
    Unsupported(("environment", "image"), "tasks run as processes; venv:PATH selects a Python", _is_not_environment),
    Unsupported(("environment", "force_pull_image"), "tasks run as processes, without images"),
    Unsupported(("environment", "registry_auth"), "tasks run as processes, without images"),
    Unsupported(("environment", "add_capabilities"), "tasks have the rights of the user who started the agent"),
    Unsupported(("environment", "drop_capabilities"), "tasks have the rights of the user who started the agent"),
    Unsupported(("environment", "ports"), "the task finds free ports by itself"),
)
"""What has an effect only where tasks run in containers."""

WARNED_OF_COMMANDS = (
    *(row for row in WARNED if row.path[0] in ("slurm", "pbs")),
    Unsupported(("work_dir",), "a command starts in its context"),
    Unsupported(
        ("resources", "is_single_node"), "all its slots are on one agent", lambda value: value is False, "here"
    ),
    Unsupported(("idle_timeout",), "a command runs until it ends or is killed", when="in a command"),
    Unsupported(("notebook_idle_type",), "there are no notebooks"),
    Unsupported(("tensorboard_args",), "there is no TensorBoard"),
)

WARNED_OF_SHELLS = (
    *(row for row in WARNED_OF_COMMANDS if row.path[0] not in ("idle_timeout", "work_dir")),
    Unsupported(("work_dir",), "a shell opens in its context"),
    Unsupported(("entrypoint",), "put set-up into startup-hook.sh of the context", when="in a shell"),
)


def check_command(
    own: Mapping[str, Any], rows: Iterable[Unsupported] = WARNED_OF_COMMANDS, *, has_containers: bool = False
) -> Iterator[Finding]:
    """Yields a warning for each setting of a command or a shell that has no effect, and an error for a pod.

    Args:
        own: the submitted configuration.
        rows: the settings without effect.
        has_containers: True if the cluster has agents that run tasks in containers.
    """
    yield from _pod(own)
    warnings = _warnings(own, rows)
    yield from (each for each in warnings if not (has_containers and each.without_containers))
    yield from _proxy(own)


def check(own: Mapping[str, Any], merged: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields an error for each feature without which the experiment cannot run, and a warning for each other one.

    Args:
        own: the submitted configuration. Only its values are warned about: its author did not write the defaults.
        merged: the same with the defaults of the cluster.
    """
    yield from _storage(merged)
    yield from _pod(own)
    yield from _warnings(own, WARNED)
    yield from _proxy(own)


def _warnings(own: Mapping[str, Any], rows: Iterable[Unsupported]) -> Iterator[Finding]:
    for row in rows:
        yield from _warning(own, row, row.when, without_containers=False)
    for row in WARNED_WITHOUT_CONTAINERS:
        yield from _warning(own, row, "without containers", without_containers=True)


def _warning(own: Mapping[str, Any], row: Unsupported, when: str, *, without_containers: bool) -> Iterator[Finding]:
    value = _value_at(own, row.path)
    if value is not None and row.applies(value):
        message = f'"{render_path(row.path)}" has no effect {when}'
        yield Finding("W503", row.path, message, row.instead, "key", "warning", without_containers)


def _storage(merged: Mapping[str, Any]) -> Iterator[Finding]:
    storage = merged.get("checkpoint_storage")
    kind = storage.get("type") if isinstance(storage, dict) else None
    path: Path = ("checkpoint_storage", "type")
    if not isinstance(kind, str):
        return  # named as a wrong type elsewhere
    if kind in REMOVED_STORAGES:
        yield Finding("E402", path, f'checkpoint storage "{kind}" is no longer supported', REMOVED_STORAGES[kind])


def _pod(own: Mapping[str, Any]) -> Iterator[Finding]:
    """A pod says what its task may use and where it runs; a container of an agent would follow none of it."""
    path: Path = ("environment", "pod_spec")
    if _value_at(own, path):
        message = '"environment.pod_spec" is not supported: agents run containers themselves, without Kubernetes'
        yield Finding("E403", path, message, _INSTEAD_OF_POD, "key")


def _proxy(own: Mapping[str, Any]) -> Iterator[Finding]:
    ports = _value_at(own, ("environment", "proxy_ports"))
    for index, port in enumerate(ports if isinstance(ports, list) else []):
        for key, instead in PROXY_KEYS.items():
            if isinstance(port, dict) and port.get(key):
                where: Path = ("environment", "proxy_ports", index, key)
                message = f'"{render_path(where)}" has no effect'
                yield Finding("W503", where, message, instead, "key", "warning")


def _value_at(config: Mapping[str, Any], path: Path) -> Any:  # noqa: ANN401  # a value of a YAML document
    value: Any = config
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value
