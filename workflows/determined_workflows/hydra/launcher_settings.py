"""The keys of a launcher of Hydra, as settings of an experiment; keys without effect are named."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MINUTES_A_DAY, MINUTES_AN_HOUR = 1440, 60
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
SLURM_OPTIONS = frozenset(
    "account acctg-freq array begin chdir comment constraint container contiguous core-spec cores-per-socket cpu-bind "
    "cpu-freq cpus-per-gpu cpus-per-task deadline dependency distribution error exclude exclusive export extra-node-info "
    "gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint hold immediate input "
    "job-name kill-on-bad-exit label licenses mail-type mail-user mem mem-bind mem-per-cpu mem-per-gpu mincpus mpi network "
    "nice no-kill no-requeue nodelist nodes ntasks ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket "
    "open-mode output overcommit oversubscribe partition power prefer priority profile propagate qos reboot requeue "
    "reservation signal sockets-per-node switches threads-per-core time time-min tmp unbuffered use-min-nodes "
    "wait-all-nodes wckey".split()
)
"""Long options of ``sbatch`` and ``srun``. As a line of ``setup``, a script for the shell, they have no effect."""
OWN_KEYS = {
    "account": "account",
    "comment": "comment",
    "constraint": "constraint",
    "cpus-per-gpu": "cpus_per_gpu",
    "cpus-per-task": "cpus_per_task",
    "exclude": "exclude",
    "gpus-per-node": "gpus_per_node",
    "gpus-per-task": "gpus_per_task",
    "gres": "gres",
    "job-name": "name",
    "mem-per-cpu": "mem_per_cpu",
    "mem-per-gpu": "mem_per_gpu",
    "nodes": "nodes",
    "ntasks-per-node": "tasks_per_node",
    "partition": "partition",
    "qos": "qos",
}
"""Options of Slurm that have a key of their own in the launcher."""
_SETUP_OPTION = re.compile(r"\s*(?:#SBATCH\s+)?(?P<dashes>--)?(?P<name>[a-z][a-z-]*)(?:=(?P<value>\S*))?\s*\Z")
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?\Z")


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


def unused(launcher: Mapping[str, Any]) -> Iterator[str]:
    """Yields a warning for each key with a value that has no effect on the cluster."""
    for key, quiet in QUIET.items():
        value = launcher.get(key)
        if value not in quiet:
            instead = INSTEAD.get(key)
            yield f"hydra.launcher.{key} has no effect on the cluster" + (f": {instead}" if instead else "")


def setup_warnings(lines: Sequence[str]) -> Iterator[str]:
    """Yields a warning for each line of ``setup`` that is an option of Slurm and no command.

    >>> list(setup_warnings(["time=2-00:00:00", "export A=1"]))
    ['hydra.launcher.setup: "time=2-00:00:00" is an option of Slurm without effect there; use timeout_min: 2880']
    """
    for line in lines:
        found = _SETUP_OPTION.match(str(line))
        if found and found["name"] in SLURM_OPTIONS and (found["value"] is not None or found["name"] in _FLAGS):
            yield (
                f'hydra.launcher.setup: "{line}" is an option of Slurm without effect there; '
                f"use {_right_key(found['name'], found['value'])}"
            )


_FLAGS = frozenset(("exclusive", "hold", "contiguous", "requeue", "no-requeue", "overcommit", "oversubscribe", "unbuffered"))


def _right_key(name: str, value: str | None) -> str:
    if name == "time":
        minutes = _minutes(value or "")
        return f"timeout_min: {minutes}" if minutes else "timeout_min"
    if name in ("output", "error"):
        return "submitit_folder, the folder of the job's output"
    shown = "true" if value is None else value
    if name in OWN_KEYS:
        return f"{OWN_KEYS[name]}: {shown}"
    return f"additional_parameters.{name.replace('-', '_')}: {shown}"


def _minutes(text: str) -> int | None:
    """Returns the minutes of a time limit of Slurm: ``M``, ``M:S``, ``H:M:S``, ``D-H``, ``D-H:M`` or ``D-H:M:S``."""
    found = _TIME.match(text)
    if not found:
        return None
    first, second, third = (int(found[name] or 0) for name in ("first", "second", "third"))
    if found["days"] is not None:
        return int(found["days"]) * MINUTES_A_DAY + first * MINUTES_AN_HOUR + second + bool(third)
    if found["third"] is not None:
        return first * MINUTES_AN_HOUR + second + bool(third)
    return first + bool(second)
