"""The keys of a launcher of Hydra, as settings of an experiment; keys without effect are named."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from determined_workflows.hydra import slurm_options

QUIET: Mapping[str, tuple[object, ...]] = {
    "cpus_per_task": (None, 1),
    "tasks_per_node": (None, 1),
    "mem_gb": (None,),
    "stderr_to_stdout": (None, False),
    "qos": (None,),
    "constraint": (None,),
    "exclude": (None,),
    "gres": (None,),
    "cpus_per_gpu": (None,),
    "mem_per_gpu": (None,),
    "mem_per_cpu": (None,),
    "account": (None,),
    "signal_delay_s": (None, 120),
    "max_num_timeout": (None, 0),
    "additional_parameters": (None, {}),
    "srun_args": (None, []),
}
"""Keys without effect on the cluster, with the values that ask for nothing."""
INSTEAD = {
    "cpus_per_task": "slots decide how much of a machine a job gets",
    "tasks_per_node": "one process starts on each machine; start several with determined.launch.torch_distributed",
    "mem_gb": "slots decide how much of a machine a job gets",
    "qos": "use --config resources.priority=N",
    "exclude": "use a resource pool without these machines: partition",
    "constraint": "use a resource pool with these machines: partition",
    "gres": "use gpus_per_node",
    "max_num_timeout": "use --config max_restarts=N",
}


@dataclass(frozen=True)
class LauncherSettings:
    """The part of a launcher's keys that has an effect on the cluster."""

    slots: int = 1
    pool: str | None = None
    name: str | None = None
    comment: str | None = None
    setup: list[str] = field(default_factory=list)
    timeout_min: int | None = None
    max_concurrent: int | None = None


def read(launcher: Mapping[str, Any]) -> LauncherSettings:
    """Returns the settings of a launcher's keys; of a launcher without such keys, the defaults.

    >>> read({"gpus_per_node": 8, "nodes": 2, "partition": "compute"}).slots
    16
    """
    nodes = int(launcher.get("nodes") or 1)
    per_node = launcher.get("gpus_per_node")
    if per_node is None and launcher.get("gpus_per_task") is not None:
        per_node = int(launcher["gpus_per_task"]) * int(launcher.get("tasks_per_node") or 1)
    slots = int(per_node or 0) * nodes
    return LauncherSettings(
        slots=slots or 1,
        pool=launcher.get("partition"),
        name=launcher.get("name"),
        comment=launcher.get("comment"),
        setup=[str(line) for line in launcher.get("setup") or ()],
        timeout_min=launcher.get("timeout_min"),
        max_concurrent=launcher.get("array_parallelism"),
    )


def warnings(launcher: Mapping[str, Any]) -> Iterator[str]:
    """Yields a warning for each key, and for each line of ``setup``, that has no effect on the cluster."""
    yield from slurm_options.setup_warnings(launcher.get("setup") or ())
    for key, quiet in QUIET.items():
        value = launcher.get(key)
        if value not in quiet:
            instead = INSTEAD.get(key)
            yield f"hydra.launcher.{key} has no effect on the cluster" + (f": {instead}" if instead else "")
