"""``python3 -m determined.launch.roles roles.json``: named groups of processes on the slots of one trial.

The same line runs in every container of the allocation. Each container starts the processes that are placed on it.
"""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from determined_launch import (
    environment,
    exit_records,
    launcher,
    role_environment,
    role_file,
    role_placement,
    watchdog,
)
from determined_launch.environment import RendezvousFacts
from determined_launch.errors import UsageError
from determined_launch.launcher import LaunchContext
from determined_launch.ports import Reservation
from determined_launch.role_environment import RolePorts
from determined_launch.role_plan import ProcessPlan, RolePlan
from determined_launch.runner import Plan

MODULE = "determined.launch.roles"
_PYTHONS = ("python", "python3")


def launch(context: LaunchContext) -> int:
    """Starts this container's part."""
    devices = role_environment.devices(context.environ)
    context = dataclasses.replace(context, facts=_facts(context, len(devices)))
    facts = context.facts
    if context.line.overrides or len(context.line.command) != 1:
        raise UsageError(f"write one file: python3 -m {MODULE} roles.json")
    file = role_file.read(Path(context.line.command[0]), largest=max(1, *facts.slots))
    processes = role_placement.place(file.roles, facts)
    shared = role_placement.sharing(processes, facts)
    if shared and facts.is_chief:
        context.say(shared)
    reserved = Reservation(len(processes) + len(file.roles))
    try:
        ports = RolePorts(
            dict(enumerate(reserved.ports[: len(processes)])),
            dict(zip([role.name for role in file.roles], reserved.ports[len(processes) :], strict=True)),
        )
        planned = [
            ProcessPlan(
                process.label,
                process.rank,
                _command(process.role.command, context.python),
                role_environment.variables(process, processes, facts, ports, devices),
                process.role.is_daemon,
            )
            for process in processes
            if process.container == facts.rank
        ]
        folder = exit_records.place(context.environ, "roles")
        RolePlan(tuple(planned), file.preload, is_alone=facts.nodes == 1).write(folder)
        added = launcher.variables(context, environment.USE_TORCH_DISTRIBUTED, "True")
        argv = (context.python, "-m", "determined_launch.role_processes", str(folder))
        return watchdog.run(context, Plan(argv, added))
    finally:
        reserved.close()


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
