"""Checks before a submission what Slurm accepts and then never starts: a partition that is down, a limit too long."""

from dataclasses import dataclass
from difflib import get_close_matches

from determined_workflows.batch import durations

UP = "UP"


@dataclass(frozen=True)
class Partition:
    """One line of ``scontrol --oneliner show partition``."""

    name: str
    state: str
    max_time: str
    is_default: bool
    nodes: int | None = None
    """The most nodes of a job, None if not known."""


def parse(text: str) -> list[Partition]:
    """Returns the partitions of the output of ``scontrol``."""
    partitions = []
    for line in text.splitlines():
        values = dict(pair.split("=", 1) for pair in line.split() if "=" in pair)
        if "PartitionName" in values:
            is_default = values.get("Default") == "YES"
            limit = values.get("MaxTime", "UNLIMITED")
            counts = [int(values[name]) for name in ("MaxNodes", "TotalNodes") if values.get(name, "").isdigit()]
            nodes = min(counts, default=None)
            partitions.append(Partition(values["PartitionName"], values.get("State", UP), limit, is_default, nodes))
    return partitions


def problem(known: list[Partition], wanted: str | None, time: str | None, nodes: int = 1) -> str | None:
    """Returns why a job of a partition would not start, None if it can.

    Parameters:
        known: the partitions of the cluster.
        wanted: the partition, or several with commas, of which one has to be usable; None for the default.
        time: the limit of the job, None for the partition's.
        nodes: how many the job needs.
    """
    if wanted is None:
        default = next((each for each in known if each.is_default), None)
        if default is None:
            return f"no partition is the default; name one with --partition: {_names(known)}"
        return _of(default, time, nodes)
    problems = []
    for name in wanted.split(","):
        found = next((each for each in known if each.name == name), None)
        reason = _absent(known, name) if found is None else _of(found, time, nodes)
        if reason is None:
            return None
        problems.append(reason)
    return problems[0]


def _of(partition: Partition, time: str | None, nodes: int) -> str | None:
    if partition.state != UP:
        return (
            f"the partition {partition.name} is {partition.state}: the job would wait until an administrator opens it"
        )
    if partition.nodes is not None and nodes > partition.nodes:
        return (
            f"the job needs {nodes} nodes, and the partition {partition.name} gives {partition.nodes}: it would never "
            "start; ask for less with --nodes, or for another partition"
        )
    limit = durations.seconds(partition.max_time)
    if time is None or limit is None:
        return None
    wanted = durations.seconds(time)
    if wanted is None or wanted > limit:
        return (
            f"the time limit {time} is above the {partition.max_time} of the partition {partition.name}: the job would "
            "never start; ask for less with --time, or for another partition"
        )
    return None


def _absent(known: list[Partition], name: str) -> str:
    near = get_close_matches(name, [each.name for each in known], n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"there are {_names(known)}"
    return f'there is no partition "{name}"; {hint}'


def _names(known: list[Partition]) -> str:
    return ", ".join(each.name for each in known)


def limit(known: list[Partition], wanted: str | None) -> int | None:
    """Returns the longest time limit of a partition in seconds, None without one."""
    names = wanted.split(",") if wanted else [each.name for each in known if each.is_default]
    limits = [durations.seconds(each.max_time) for each in known if each.name in names]
    return min((each for each in limits if each is not None), default=None)
