"""``python3 -m determined.launch.roles roles.json``: named groups of processes on the slots of one trial.

The same line runs in every container of the allocation. Each container starts the processes that are placed on it.
"""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from determined_launch import (
    arguments,
    environment,
    exit_records,
    launcher,
    role_environment,
    role_file,
    role_placement,
    watchdog,
)
from determined_launch.environment import RendezvousFacts
from determined_launch.launcher import LaunchContext
from determined_launch.ports import Reservation
from determined_launch.role_environment import RolePorts
from determined_launch.role_peers import Chief, Member
from determined_launch.role_placement import RoleProcess
from determined_launch.role_plan import ProcessPlan, RolePlan
from determined_launch.runner import LauncherPlan

MODULE = arguments.ROLES
_PYTHONS = ("python", "python3")


def launch(context: LaunchContext) -> int:
    """Starts this container's part."""
    devices = role_environment.devices(context.environ)
    context = dataclasses.replace(context, facts=_facts(context, len(devices)))
    file = role_file.read(Path(context.line.command[0]), largest=max(1, *context.facts.slots))
    processes = role_placement.place(file.roles, context.facts)
    shared = role_placement.sharing(processes, context.facts)
    if shared and context.facts.is_chief:
        context.say(shared)
    own = [process for process in processes if process.container == context.facts.rank]
    with Reservation(len(own) + len(file.roles)) as reserved:
        ports = _ports(processes, own, reserved)
        folder = exit_records.place(context.environ, "roles")
        RolePlan.clear(folder)
        peers = _peers(context, ports, folder)
        try:
            all_ports = peers.ports if peers is not None else ports
            planned = [_planned(process, processes, context, all_ports, devices) for process in own]
            plan = RolePlan(tuple(planned), file.preload, is_alone=peers is None)
            return _run(context, plan, folder, peers)
        finally:
            if peers is not None:
                peers.close()


def _ports(processes: Sequence[RoleProcess], own: Sequence[RoleProcess], reserved: Sequence[int]) -> RolePorts:
    """Returns the ports of this container: of its processes, and of the stores of roles that begin here."""
    left = iter(reserved)
    by_rank = {process.rank: next(left) for process in own}
    return RolePorts(by_rank, {process.role.name: next(left) for process in own if process.index == 0})


def _peers(context: LaunchContext, own: RolePorts, folder: Path) -> "Chief | Member | None":
    if context.facts.nodes == 1:
        return None
    return Chief(context, own, folder) if context.facts.is_chief else Member(context, own, folder)


def _planned(
    process: RoleProcess,
    processes: Sequence[RoleProcess],
    context: LaunchContext,
    ports: RolePorts,
    devices: Sequence[str],
) -> ProcessPlan:
    return ProcessPlan(
        process.label,
        process.rank,
        _command(process.role.command, context.python),
        role_environment.variables(process, processes, context.facts, ports, devices),
        process.role.environment,
        process.role.is_daemon,
    )


def _run(context: LaunchContext, plan: RolePlan, folder: Path, peers: "Chief | Member | None") -> int:
    plan.write(folder)
    added = launcher.variables(context, environment.USE_TORCH_DISTRIBUTED, "True")
    argv = (context.python, "-m", "determined_launch.role_processes", str(folder))
    code = watchdog.run(context, LauncherPlan(argv, added), watch=peers)
    if peers is not None and code:
        peers.tell(code)
    return code


def _facts(context: LaunchContext, devices: int) -> RendezvousFacts:
    """Returns the containers; off the cluster one with all GPUs of this machine."""
    environ = context.environ
    if devices and not environ.get(environment.ALLOCATION_ID) and not environ.get(environment.WORKER_OF):
        return RendezvousFacts(("127.0.0.1",), 0, (devices,))
    return context.facts


def _command(words: Sequence[str], python: str) -> tuple[str, ...]:
    """Returns the command; ``python3`` is the Python of the layer."""
    return (python, *words[1:]) if words[0] in _PYTHONS else tuple(words)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the layer; returns the exit code of the first process that failed, else 0."""
    return launcher.main(MODULE, argv, launch)


if __name__ == "__main__":
    sys.exit(main())
