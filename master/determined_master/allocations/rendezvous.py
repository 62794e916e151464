"""Rendezvous of the containers of an allocation: addresses and ranks. Pure."""

import ipaddress
from collections.abc import Mapping, Sequence

from determined.states import ContainerState
from determined_master.allocations.rendezvous_queries import MeetingContainer

LATE_SECONDS = 60.0
"""After this time the log names the missing containers."""


def addresses(containers: Sequence[MeetingContainer], master_seen_at: Mapping[str, str]) -> list[str]:
    """Returns the addresses in rank order, each reachable by all peers. A container on the master's own machine mostly
    knows itself as 127.0.0.1, which its peers cannot use; ``master_seen_at`` (agent id → the address at which that
    agent reaches the master) replaces it."""
    own = [container.address for container in containers]
    seen = next(
        (master_seen_at[c.agent_id] for c in containers if not _is_loopback(master_seen_at.get(c.agent_id, "::1"))),
        None,
    )
    if seen is None or not any(_is_loopback(a) for a in own) or all(_is_loopback(a) for a in own):
        return own
    return [seen if _is_loopback(address) else address for address in own]


def missing(containers: Sequence[MeetingContainer]) -> str:
    """Returns the sentence about missing containers for the trial's log."""
    late = [c for c in containers if c.state is not ContainerState.RUNNING]
    names = ", ".join(f"container {c.rank} on agent {c.agent_id} ({c.state.value.lower()})" for c in late)
    return f"{len(containers) - len(late)} of {len(containers)} containers are ready; waiting for {names}"


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
