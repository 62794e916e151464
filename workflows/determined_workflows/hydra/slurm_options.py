"""Options of Slurm among the lines of a launcher's ``setup``: that is a script for the shell, where they do nothing."""

import re
from collections.abc import Iterator, Sequence

MINUTES_A_DAY, MINUTES_AN_HOUR = 1440, 60
_OPTIONS = frozenset(
    (
        *("account", "array", "begin", "chdir", "comment", "constraint", "contiguous", "cpu-bind", "cpus-per-gpu"),
        *("cpus-per-task", "deadline", "dependency", "distribution", "error", "exclude", "exclusive", "export"),
        *("gpu-bind", "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres", "gres-flags"),
        *("hint", "hold", "job-name", "kill-on-bad-exit", "label", "licenses", "mail-type", "mail-user", "mem"),
        *("mem-bind", "mem-per-cpu", "mem-per-gpu", "mincpus", "mpi", "network", "nice", "no-kill", "no-requeue"),
        *("nodelist", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "open-mode", "output"),
        *("overcommit", "oversubscribe", "partition", "power", "prefer", "priority", "profile", "propagate", "qos"),
        *("reboot", "requeue", "reservation", "signal", "switches", "threads-per-core", "time", "time-min", "tmp"),
        *("unbuffered", "wait-all-nodes", "wckey"),
    )
)
"""Long options of ``sbatch`` and ``srun``."""
_FLAGS = frozenset(
    ("contiguous", "exclusive", "hold", "no-requeue", "overcommit", "oversubscribe", "requeue", "unbuffered")
)
"""Options without a value. The others need one here: ``time`` alone is a command."""
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
ALTERNATIVES = (
    frozenset(("mem", "mem-per-cpu", "mem-per-gpu")),
    frozenset(("gres", "gpus", "gpus-per-node", "gpus-per-task")),
    frozenset(("requeue", "no-requeue")),
)
"""Options of which a job has one."""
_SETUP_OPTION = re.compile(r"\s*(?:#SBATCH\s+)?(?:--)?(?P<name>[a-z][a-z-]*)(?:=(?P<value>\S*))?\s*\Z")
_TIME = re.compile(r"(?:(?P<days>\d+)-)?(?P<first>\d+)(?::(?P<second>\d+))?(?::(?P<third>\d+))?\Z")


def setup_warnings(lines: Sequence[str]) -> Iterator[str]:
    """Yields a warning for each line of ``setup`` that is an option of Slurm and no command.

    >>> list(setup_warnings(["time=2-00:00:00", "export A=1"]))
    ['hydra.launcher.setup: "time=2-00:00:00" is an option of Slurm without effect there; use timeout_min: 2880']
    """
    for line in lines:
        found = _SETUP_OPTION.match(str(line))
        if found and found["name"] in _OPTIONS and (found["value"] is not None or found["name"] in _FLAGS):
            yield (
                f'hydra.launcher.setup: "{line}" is an option of Slurm without effect there; '
                f"use {_right_key(found['name'], found['value'])}"
            )


def _right_key(name: str, value: str | None) -> str:
    if name == "time":
        limit = minutes(value or "")
        return f"timeout_min: {limit}" if limit else "timeout_min"
    if name in ("output", "error"):
        return "submitit_folder, the folder of the job's output"
    shown = "true" if value is None else value
    if name in OWN_KEYS:
        return f"{OWN_KEYS[name]}: {shown}"
    return f"additional_parameters.{name.replace('-', '_')}: {shown}"


def minutes(text: str) -> int | None:
    """Returns the minutes of a time limit of Slurm: ``M``, ``M:S``, ``H:M:S``, ``D-H``, ``D-H:M`` or ``D-H:M:S``."""
    match = _TIME.match(text)
    if not match:
        return None
    first, second, third = (int(match[name] or 0) for name in ("first", "second", "third"))
    if match["days"] is not None:
        return int(match["days"]) * MINUTES_A_DAY + first * MINUTES_AN_HOUR + second + bool(third)
    if match["third"] is not None:
        return first * MINUTES_AN_HOUR + second + bool(third)
    return first + bool(second)
