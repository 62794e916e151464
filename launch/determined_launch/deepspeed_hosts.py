"""The hosts of a run by deepspeed's names, and the hosts that deepspeed's filters select.

Without a remote shell each machine starts its own part, so names are only labels: the address if only one container
has it, ``localhost`` on one machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError


@dataclass(frozen=True)
class Part:
    """This machine's part of a run: its number among the participating machines, the address of the first one, and the
    ranks of their containers in the allocation."""

    node_rank: int
    first_address: str
    ranks: tuple[int, ...]


def names(facts: RendezvousFacts) -> list[str]:
    """Returns one label for each container, in rank order."""
    if facts.nodes == 1:
        return ["localhost"]
    plain = [address.replace(":", "-") for address in facts.addresses]  # ":" has a meaning in deepspeed's filters
    return [name if plain.count(name) == 1 else f"{name}-container-{rank}" for rank, name in enumerate(plain)]


def hostfile(facts: RendezvousFacts) -> str:
    """Returns the text of the host file."""
    lines = zip(names(facts), facts.slots, strict=True)
    return "".join(f"{name} slots={max(1, slots)}\n" for name, slots in lines)


def part(given: Mapping[str, str], facts: RendezvousFacts) -> Part | None:
    """Returns this machine's part; None if the filters exclude it.

    Raises LaunchError if they contradict the allocation.
    """
    labels = _hosts_of_file(given["hostfile"], facts) if "hostfile" in given else names(facts)
    taking_part = _filtered(given, labels)
    wanted = given.get("num_nodes", "")
    if wanted.isdigit() and int(wanted) > 0:
        if int(wanted) > facts.nodes:
            raise LaunchError(f"--num_nodes {wanted} was given, but this allocation has {_machines(facts.nodes)}")
        taking_part = taking_part[: int(wanted)]
    if not taking_part:
        raise LaunchError(f"--include and --exclude leave no machine; the hosts are: {', '.join(labels)}")
    if facts.rank not in taking_part:
        return None
    first = taking_part[0]
    address = "127.0.0.1" if facts.nodes == 1 else facts.addresses[first]
    return Part(taking_part.index(facts.rank), address, tuple(taking_part))


def _hosts_of_file(path: str, facts: RendezvousFacts) -> list[str]:
    """Returns the hosts that a user's file names, one for each machine of the allocation."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise LaunchError(f"cannot read the hostfile {path}: {reason}") from None
    hosts = [line.split()[0] for line in lines if line.strip() and not line.strip().startswith("#")]
    if len(hosts) != facts.nodes:
        raise LaunchError(
            f"the hostfile {path} names {len(hosts)} hosts, but this allocation has {_machines(facts.nodes)}"
        )
    return hosts


def _filtered(given: Mapping[str, str], labels: Sequence[str]) -> list[int]:
    """Returns the numbers of the machines that ``--include`` and ``--exclude`` select.

    The launcher itself reports other errors in them.
    """
    included, excluded = _nodes(given.get("include", "")), _nodes(given.get("exclude", ""))
    chosen = [rank for rank, name in enumerate(labels) if not included or name in included]
    unknown = (set(included) | set(excluded)) - set(labels)
    if unknown:
        raise LaunchError(f"host {sorted(unknown)[0]} is not in this allocation; its hosts are: {', '.join(labels)}")
    return [rank for rank in chosen if excluded.get(labels[rank], "some") != ""]


def _nodes(text: str) -> dict[str, str]:
    """Returns host → its slots; an empty list means all slots."""
    parts = (part.partition(":") for part in text.split("@") if part)
    return {name: slots for name, _, slots in parts}


def _machines(count: int) -> str:
    return "1 machine" if count == 1 else f"{count} machines"
