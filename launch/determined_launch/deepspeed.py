"""``python3 -m determined.launch.deepspeed [overrides --] (--trial m:C | script args…)``.

The same line runs in every container. Each container starts deepspeed's runner for its part, without a remote shell.
"""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path

from determined_launch import deepspeed_hosts, environment, launcher, options, ports, watchdog
from determined_launch.arguments import LaunchLine
from determined_launch.deepspeed_hosts import Part
from determined_launch.errors import LaunchError
from determined_launch.launcher import LaunchContext
from determined_launch.runner import LauncherPlan

MODULE = "determined.launch.deepspeed"
DEFAULT_PORT = 29400

_KNOWN = {
    name: name
    for name in (
        *("hostfile", "include", "exclude", "num_nodes", "num_gpus", "master_port", "master_addr", "node_rank"),
        *("module", "no_python", "launcher", "launcher_args", "ssh_port", "venv_script", "autotuning"),
        *("no_local_rank", "no_ssh", "no_ssh_check"),  # --no_ is ambiguous
    )
} | {"H": "hostfile", "i": "include", "e": "exclude", "num_accelerators": "num_gpus"}
# deepspeed starts wrap_rank; this decides how the user's own words are started
_HOW = ("module", "no_python")
_REMOTE_SHELLS = ("launcher", "launcher_args", "ssh_port", "venv_script")
_ACCELERATORS = ("nvidia[0-9]*", "nvidiactl", "kfd", "dxg", "davinci[0-9]*", "accel/*", "hl[0-9]*", "mlu_dev*")
_ACCELERATOR = "DS_ACCELERATOR"


def build(line: LaunchLine, part: Part, *, hostfile: str, port: str, python: str) -> LauncherPlan:
    """Returns the plan for deepspeed's runner, which passes addresses, filters and log options to its own launcher."""
    given = options.given(line.overrides, _KNOWN)
    return LauncherPlan(
        argv=(
            python,
            "-m",
            "deepspeed.launcher.runner",
            "--hostfile",
            hostfile,
            "--no_ssh",
            "--node_rank",
            str(part.node_rank),
            "--master_addr",
            part.first_address,
            "--master_port",
            port,
            "--no_python",
            "--no_local_rank",
            *options.without(line.overrides, _HOW, _KNOWN),
            python,
            "-m",
            "determined_launch.wrap_rank",
            "RANK",
            "--",
            *options.command(line.command, given, python),
        ),
        is_shielded=True,
    )


def has_accelerator(devices: Path = Path("/dev")) -> bool:
    """Returns True if this machine has a device that deepspeed could use."""
    return any(next(devices.glob(pattern), None) is not None for pattern in _ACCELERATORS)


def launch(context: LaunchContext) -> int:
    """Starts this container's part."""
    launcher.require(MODULE, "torch")
    launcher.require(MODULE, "deepspeed")
    facts, environ = context.facts, context.environ
    given = options.given(context.line.overrides, _KNOWN)
    part = deepspeed_hosts.part(given, facts)
    if part is None:
        context.say(f"the filters leave this machine, {deepspeed_hosts.names(facts)[facts.rank]}, without slots")
        return 0
    _check(context, given.get("autotuning", ""), [name for name in _REMOTE_SHELLS if name in given])
    port = launcher.port(context, environment.C10D_PORT, DEFAULT_PORT)
    if part.node_rank == 0 and not {"master_port", "master_addr"} & set(given):
        ports.check(port, "deepspeed (C10D_PORT)")
    hostfile = context.run_folder / "info" / "deepspeed-hostfile"
    hostfile.parent.mkdir(parents=True, exist_ok=True)
    hostfile.write_text(deepspeed_hosts.hostfile(facts), encoding="utf-8")
    plan = build(context.line, part, hostfile=str(hostfile), port=str(port), python=context.python)
    added = launcher.variables(context, environment.USE_DEEPSPEED, "1")
    if environment.VISIBLE_DEVICES in environ:
        added[environment.CONTAINER_DEVICES] = environ[environment.VISIBLE_DEVICES]
    if _ACCELERATOR not in environ and not has_accelerator():
        added[_ACCELERATOR] = "cpu"
    return watchdog.run(context, dataclasses.replace(plan, variables=added), ranks=part.ranks)


def _check(context: LaunchContext, autotuning: str, shells: Sequence[str]) -> None:
    if autotuning and context.facts.nodes > 1:
        raise LaunchError("--autotuning starts its experiments through a remote shell, so it works on 1 machine only")
    for name in shells:
        context.say(f"--{name} has no effect: each machine starts its own workers, without a remote shell")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the layer; returns the exit code of the first failed worker, else that of the launcher."""
    return launcher.main(MODULE, argv, launch)


if __name__ == "__main__":
    sys.exit(main())
