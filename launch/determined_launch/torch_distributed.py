"""``python3 -m determined.launch.torch_distributed [overrides --] (--trial m:C | script args…)``.

The same line runs in every container of the allocation. Each container starts its own ``torch.distributed.run``.
"""

import dataclasses
import sys
from collections.abc import Mapping, Sequence

from determined_launch import environment, launcher, options, ports, watchdog
from determined_launch.arguments import LaunchLine
from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError
from determined_launch.launcher import LaunchContext
from determined_launch.runner import LauncherPlan

MODULE = "determined.launch.torch_distributed"
DEFAULT_PORT = 29400

_KNOWN = {
    name: name
    for name in (
        *("nnodes", "nproc_per_node", "node_rank", "master_addr", "master_port", "max_restarts", "local_addr"),
        *("rdzv_backend", "rdzv_endpoint", "standalone", "module", "no_python", "run_path"),
        "monitor_interval",  # --mo is ambiguous
    )
} | {"m": "module"}
# torch starts wrap_rank; this decides how the user's own words are started
_HOW = ("module", "m", "no_python", "run_path")


def build(line: LaunchLine, facts: RendezvousFacts, *, port: str, python: str) -> LauncherPlan:
    """Returns the plan for ``torch.distributed.run``.

    Overrides come after our options, so that argparse prefers them.
    """
    given = options.given(line.overrides, _KNOWN)
    _check(given, facts)
    return LauncherPlan(
        argv=(
            python,
            "-m",
            "torch.distributed.run",
            "--nnodes",
            str(facts.nodes),
            "--nproc_per_node",
            str(max(1, facts.local_slots)),
            "--max_restarts",
            "0",
            *_rendezvous(given, facts, port),
            "--module",
            *options.without(line.overrides, _HOW, _KNOWN),
            # RANK before the "--": argparse gives everything from the first positional on to the module untouched
            "determined_launch.wrap_rank",
            "RANK",
            "--",
            *options.command(line.command, given, python),
        ),
        restarts=given.get("max_restarts", "0") not in ("0", ""),
    )


def _rendezvous(given: Mapping[str, str], facts: RendezvousFacts, port: str) -> list[str]:
    """Returns the rendezvous options without those that torch would ignore, or prefer, beside an override."""
    chief = "localhost" if facts.nodes == 1 else _bracketed(facts.chief)
    if "standalone" in given:
        return []
    if given.get("rdzv_backend", "static") == "static":
        rank = ["--node_rank", str(facts.rank)]
        if "rdzv_endpoint" in given:
            return rank
        return [*rank, "--master_addr", chief, "--master_port", port]
    # its backends number machines themselves and use a host name that others may not resolve
    own = [] if facts.nodes == 1 else ["--local_addr", facts.addresses[facts.rank]]
    return own if "rdzv_endpoint" in given else ["--rdzv_endpoint", f"{chief}:{port}", *own]


def _check(given: Mapping[str, str], facts: RendezvousFacts) -> None:
    """Raises LaunchError for overrides that contradict the allocation; torch would wait for other machines in vain."""
    if "standalone" in given and facts.nodes > 1:
        raise LaunchError(f"--standalone is for 1 machine, and this allocation has {facts.nodes}")
    if "rdzv_endpoint" not in given and "nnodes" in given:
        least, _, most = given["nnodes"].partition(":")
        if least.isdigit() and not int(least) <= facts.nodes <= int(most if most.isdigit() else least):
            raise LaunchError(f"--nnodes {given['nnodes']} was given, but this allocation has {_machines(facts.nodes)}")
    rank = given.get("node_rank", "")
    if rank.isdigit() and int(rank) != facts.rank:
        raise LaunchError(
            f"--node_rank {rank} was given, but this is machine number {facts.rank} of {facts.nodes} (from 0); drop it"
        )


def _machines(count: int) -> str:
    return "1 machine" if count == 1 else f"{count} machines"


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def launch(context: LaunchContext) -> int:
    """Starts this container's part."""
    launcher.require(MODULE, "torch")
    facts = context.facts
    port = launcher.port(context, environment.C10D_PORT, DEFAULT_PORT)
    given = options.given(context.line.overrides, _KNOWN)
    plan = build(context.line, facts, port=str(port), python=context.python)
    if facts.is_chief and not {"rdzv_endpoint", "master_port", "master_addr", "standalone"} & set(given):
        ports.check(port, "torch.distributed (C10D_PORT)")
    added = launcher.variables(context, environment.USE_TORCH_DISTRIBUTED, "True")
    return watchdog.run(context, dataclasses.replace(plan, variables=added))


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the layer; returns the exit code of the first failed worker, else that of the launcher."""
    return launcher.main(MODULE, argv, launch)


if __name__ == "__main__":
    sys.exit(main())
