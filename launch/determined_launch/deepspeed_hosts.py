"""The hosts of a run as deepspeed names them, and which of them its filters leave.

Without a remote shell each machine starts its own part, so the names are only labels: an address where it is a
container's alone, ``localhost`` on one machine.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError


@dataclass(frozen=True)
class Part:
    """This machine's part of a run: its number among the machines that take part and where the first one is."""

    node_rank: int
    first_address: str


def names(facts: RendezvousFacts) -> list[str]:
    """One label for each container, in rank order."""
    if facts.nodes == 1:
        return ["localhost"]
    plain = [address.replace(":", "-") for address in facts.addresses]  # deepspeed's filters give ":" a meaning
    return [name if plain.count(name) == 1 else f"{name}-container-{rank}" for rank, name in enumerate(plain)]


def hostfile(facts: RendezvousFacts) -> str:
    """The text of the file."""
    lines = zip(names(facts), facts.slots, strict=True)
    return "".join(f"{name} slots={max(1, slots)}\n" for name, slots in lines)


def part(given: Mapping[str, str], facts: RendezvousFacts) -> Part | None:
    """``None`` where the filters leave this machine out. Raises LaunchError for what contradicts the allocation."""
    if "hostfile" in given:
        return _part_of_users_file(given["hostfile"], facts)
    taking_part = _filtered(given, names(facts))
    wanted = given.get("num_nodes", "")
    if wanted.isdigit() and int(wanted) > 0:
        if int(wanted) > facts.nodes:
            raise LaunchError(f"--num_nodes {wanted} was given, but this allocation has {_machines(facts.nodes)}")
        taking_part = taking_part[: int(wanted)]
    if facts.rank not in taking_part:
        return None
    first = taking_part[0]
    return Part(taking_part.index(facts.rank), "127.0.0.1" if facts.nodes == 1 else facts.addresses[first])


def _part_of_users_file(path: str, facts: RendezvousFacts) -> Part:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise LaunchError(f"the hostfile {path} cannot be read: {error.strerror}") from None
    count = sum(1 for line in lines if line.strip() and not line.startswith("#"))
    if count != facts.nodes:
        raise LaunchError(f"the hostfile {path} names {count} hosts, but this allocation has {_machines(facts.nodes)}")
    return Part(facts.rank, "127.0.0.1" if facts.nodes == 1 else facts.chief)


def _filtered(given: Mapping[str, str], labels: Sequence[str]) -> list[int]:
    """Numbers of the machines that ``--include`` and ``--exclude`` leave; the launcher itself refuses other errors."""
    included, excluded = _nodes(given.get("include", "")), _nodes(given.get("exclude", ""))
    chosen = [rank for rank, name in enumerate(labels) if not included or name in included]
    unknown = (set(included) | set(excluded)) - set(labels)
    if unknown:
        raise LaunchError(f"no host {sorted(unknown)[0]} in this allocation; its hosts are: {', '.join(labels)}")
    return [rank for rank in chosen if excluded.get(labels[rank], "some") != ""]


def _nodes(text: str) -> dict[str, str]:
    """Host → its slots, empty for all."""
    parts = (part.partition(":") for part in text.split("@") if part)
    return {name: slots for name, _, slots in parts}


def _machines(count: int) -> str:
    return "1 machine" if count == 1 else f"{count} machines"
