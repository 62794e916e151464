"""The environment variables of the processes of roles. Pure but for the devices of this machine."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from determined_launch import environment
from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError
from determined_launch.role_placement import RoleProcess

LOOPBACK = "127.0.0.1"
_NOT_DEVICES = ("", "-1", "NoDevFiles")


@dataclass(frozen=True)
class RolePorts:
    """Ports of the processes by rank, and of torch's store of each role by name."""

    processes: Mapping[int, int]
    stores: Mapping[str, int]

    def to_json(self) -> dict[str, object]:
        return {"processes": {str(rank): port for rank, port in self.processes.items()}, "stores": dict(self.stores)}

    @classmethod
    def merged(cls, parts: Sequence[Any]) -> "RolePorts":
        """Returns the ports of all containers from their results of :meth:`to_json`.

        Raises LaunchError if a part has another form, for example from another version.
        """
        processes: dict[int, int] = {}
        stores: dict[str, int] = {}
        try:
            for part in parts:
                processes |= {int(rank): int(port) for rank, port in part["processes"].items()}
                stores |= {str(name): int(port) for name, port in part["stores"].items()}
        except (AttributeError, KeyError, TypeError, ValueError):
            raise LaunchError("a container sent no ports; do all containers run the same version?") from None
        return cls(processes, stores)


def variables(
    process: RoleProcess,
    processes: Sequence[RoleProcess],
    facts: RendezvousFacts,
    ports: RolePorts,
    devices: Sequence[str],
) -> dict[str, str]:
    """Returns the variables of one process besides those that it inherits. ``devices`` are those of its container."""
    group = [other for other in processes if other.role.name == process.role.name]
    added = {
        **process.role.environment,
        **_of_group(process, group, facts, ports.stores[process.role.name]),
        **_of_trial(process, processes),
        environment.ROLE: process.role.name,
        environment.ROLE_INDEX: str(process.index),
        environment.ROLES: _roles(processes, facts, ports),
        environment.CHIEF_IP: address(processes[0].container, facts, processes),
    }
    if devices:
        own = [devices[slot % len(devices)] for slot in process.slots]
        added[environment.VISIBLE_DEVICES] = ",".join(dict.fromkeys(own))
    return added


def address(container: int, facts: RendezvousFacts, group: Sequence[RoleProcess]) -> str:
    """Returns the address by which the processes of ``group`` reach one of a container."""
    return LOOPBACK if len({other.container for other in group}) == 1 else facts.addresses[container]


def devices(environ: Mapping[str, str], folder: Path = Path("/dev")) -> list[str]:
    """Returns the GPUs of this container as CUDA_VISIBLE_DEVICES names them.

    Off the cluster, without that variable, they are those of the machine, or as many as the run has slots.
    """
    visible = environ.get(environment.VISIBLE_DEVICES)
    if visible is not None:
        return [name for name in visible.split(",") if name.strip() not in _NOT_DEVICES]
    if environ.get(environment.ALLOCATION_ID):
        return []
    numbers = range(len(list(folder.glob("nvidia[0-9]*"))))
    slots = json.loads(environ.get(environment.SLOT_IDS) or "null")
    return [str(number) for number in numbers if slots is None or number in slots]


def _of_group(process: RoleProcess, group: Sequence[RoleProcess], facts: RendezvousFacts, port: int) -> dict[str, str]:
    """Returns the variables of ``torch.distributed`` for the group of the role."""
    beside = [other for other in group if other.container == process.container]
    nodes = sorted({other.container for other in group})
    return {
        "RANK": str(process.index),
        "WORLD_SIZE": str(len(group)),
        "LOCAL_RANK": str(beside.index(process)),
        "LOCAL_WORLD_SIZE": str(len(beside)),
        "GROUP_RANK": str(nodes.index(process.container)),
        "GROUP_WORLD_SIZE": str(len(nodes)),
        "MASTER_ADDR": address(group[0].container, facts, group),
        "MASTER_PORT": str(port),
    }


def _of_trial(process: RoleProcess, processes: Sequence[RoleProcess]) -> dict[str, str]:
    """Returns the numbers of the process among those of all roles."""
    beside = [other for other in processes if other.container == process.container]
    nodes = sorted({other.container for other in processes})
    numbers = {
        environment.PROCESS_RANK: process.rank,
        environment.PROCESS_SIZE: len(processes),
        environment.PROCESS_LOCAL_RANK: beside.index(process),
        environment.PROCESS_LOCAL_SIZE: len(beside),
        environment.PROCESS_CROSS_RANK: nodes.index(process.container),
        environment.PROCESS_CROSS_SIZE: len(nodes),
    }
    return {name: str(number) for name, number in numbers.items()}


def _roles(processes: Sequence[RoleProcess], facts: RendezvousFacts, ports: RolePorts) -> str:
    roles: dict[str, list[dict[str, object]]] = {}
    for process in processes:
        where = address(process.container, facts, processes)
        entry = {"rank": process.rank, "address": where, "port": ports.processes[process.rank]}
        roles.setdefault(process.role.name, []).append(entry)
    return json.dumps([{"name": name, "processes": entries} for name, entries in roles.items()])
