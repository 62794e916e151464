"""Builds the command line of horovodrun: the configuration's values, then the user's overrides, which win."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from determined_launch import options
from determined_launch.errors import LaunchError
from determined_launch.settings import LaunchSettings

KNOWN = (
    {name: name for name in ("num_proc", "hosts", "hostfile", "host_discovery_script", "gloo", "mpi", "jsrun")}
    | {name: name for name in ("autotune", "no_autotune", "ssh_port", "output_filename")}
    | {name: name for name in ("hierarchical_allreduce", "no_hierarchical_allreduce")}
    | {name: name for name in ("hierarchical_allgather", "no_hierarchical_allgather")}
    | dict.fromkeys(("network_interfaces", "network_interface"), "nics")
    | dict.fromkeys(("min_np", "min_num_proc"), "min_np")
    | dict.fromkeys(("max_np", "max_num_proc"), "max_np")
    | {"np": "num_proc", "H": "hosts", "p": "ssh_port"}
)
_EXCLUSIVE = (
    ("gloo", "mpi", "jsrun"),
    ("autotune", "no-autotune"),
    ("hierarchical-allreduce", "no-hierarchical-allreduce"),
    ("hierarchical-allgather", "no-hierarchical-allgather"),
)
_RANKS = "HOROVOD_RANK,OMPI_COMM_WORLD_RANK,PMI_RANK"


@dataclass(frozen=True)
class Hosts:
    """The containers under the names that horovodrun uses."""

    names: tuple[str, ...]
    slots: tuple[int, ...]
    interface: str | None


def build(
    overrides: Sequence[str],
    hosts: Hosts,
    settings: LaunchSettings,
    *,
    python: str,
    command: Sequence[str],
    autotune_log: str,
    ssh_port: int | None = None,
) -> tuple[str, ...]:
    """Returns the argv. Omits our options that exclude one of the user's; of equal options argparse takes the last."""
    given = options.given(overrides, KNOWN)
    extra = _less_excluded(settings.horovod_arguments, overrides)
    given_all = options.given(extra, KNOWN) | given
    total, where = _processes(given_all, hosts)
    ours = ["-np", str(total), *where]
    if ssh_port is not None:
        ours += ["-p", str(ssh_port)]
    ours += ["--disable-cache", "--start-timeout", "1200", "--gloo-timeout-seconds", "240"]
    if len(hosts.names) > 1 and "nics" not in given_all and hosts.interface:
        ours += ["--network-interfaces", hosts.interface]
    if settings.autotune and "no_autotune" not in given_all:
        ours += ["--autotune", "--autotune-log-file", autotune_log]
    elif "autotune" not in given_all:  # autotuning keeps explicit values constant
        ours += ["--fusion-threshold-mb", str(settings.fusion_megabytes)]
        ours += ["--cycle-time-ms", str(settings.cycle_milliseconds)]
    ours += ["--cache-capacity", "1024", "--gloo", "--no-hierarchical-allreduce", "--no-hierarchical-allgather"]
    return (
        python,
        "-m",
        "horovod.runner.launch",
        *_less_excluded(ours, [*extra, *overrides]),
        *extra,
        *overrides,
        *command,
    )


def restarts(overrides: Sequence[str], settings: LaunchSettings) -> bool:
    """Returns True if horovod is elastic: it then continues without a failed worker."""
    given = options.given([*settings.horovod_arguments, *overrides], KNOWN)
    return "min_np" in given or "host_discovery_script" in given


def rank_variables() -> str:
    return _RANKS


def _processes(given: Mapping[str, str], hosts: Hosts) -> tuple[int, list[str]]:
    """Returns the number and the places of processes. horovod itself fills every given slot, whatever ``-np`` says."""
    slots = [max(1, count) for count in hosts.slots]
    total = sum(slots)
    text = given.get("num_proc", "")
    if {"hosts", "hostfile", "host_discovery_script"} & set(given):
        return total, []
    if text.isdigit() and int(text) > 0:
        if int(text) > total and len(slots) > 1:
            raise LaunchError(f"-np {text} was given, but this allocation has {total} slots on {len(slots)} machines")
        if len(slots) == 1:
            slots = [int(text)]
        total = int(text)
    left, listed = total, []
    for name, count in zip(hosts.names, slots, strict=True):
        if left > 0:
            listed.append(f"{name}:{min(count, left)}")
        left -= count
    return total, ["-H", ",".join(listed)]


def _less_excluded(words: Sequence[str], by: Sequence[str]) -> tuple[str, ...]:
    """Returns ``words`` without the options that an option in ``by`` excludes."""
    said = {name.replace("_", "-") for name in options.given(by, KNOWN)}
    dropped = [flag for group in _EXCLUSIVE if said & set(group) for flag in group if flag not in said]
    kept = options.without(words, dropped, KNOWN)
    if "autotune" not in dropped:
        return kept
    at = kept.index("--autotune-log-file") if "--autotune-log-file" in kept else len(kept)
    return (*kept[:at], *kept[at + 2 :])
