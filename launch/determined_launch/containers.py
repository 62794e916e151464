"""Addresses and names of the containers of an allocation."""

import ipaddress
from collections.abc import Mapping

from determined_launch import environment, settings
from determined_launch.environment import RendezvousFacts
from determined_launch.errors import LaunchError

DEFAULT_PORT = 12350
SSHD_OFFSET = 5
"""Offset of the channel's port if a real sshd uses the port itself."""


def ports(facts: RendezvousFacts, environ: Mapping[str, str]) -> list[int]:
    """Returns the channel's port of each container."""
    offset = SSHD_OFFSET if settings.read(environ).remote_shell == "ssh" else 0
    return [port + offset for port in shell_ports(facts, environ)]


def shell_ports(facts: RendezvousFacts, environ: Mapping[str, str]) -> list[int]:
    """Returns the port of each container's remote shell; containers with one address have consecutive ports."""
    text = environ.get(environment.SSH_PORT, "")
    first = int(text) if text.isdigit() else DEFAULT_PORT
    return [first + facts.addresses[:rank].count(address) for rank, address in enumerate(facts.addresses)]


def host_names(facts: RendezvousFacts) -> list[str]:
    """Returns the host names for horovod: the chief is ``localhost``, others have their address if it is unique.

    Any other container gets a loopback address of its own. No interface has that address, so horovod does not take the
    container for its own machine and asks no name service.
    """
    return ["localhost", *(_name(facts, rank) for rank in range(1, facts.nodes))]


def key(environ: Mapping[str, str]) -> bytes:
    """Returns the allocation's key. Raises LaunchError off the cluster."""
    try:
        secret = bytes.fromhex(environ.get(environment.ALLOCATION_KEY, ""))
    except ValueError:
        secret = b""
    if not secret:
        raise LaunchError(
            f"{environment.ALLOCATION_KEY} is not set; a task with several containers needs it to connect them"
        )
    return secret


def _name(facts: RendezvousFacts, rank: int) -> str:
    address = facts.addresses[rank]
    if _is_plain(address) and facts.addresses.count(address) == 1:
        return address
    return f"127.77.{rank // 250}.{rank % 250 + 1}"


def _is_plain(address: str) -> bool:
    """Returns False for addresses that horovod cannot use: those with a colon, and loopback (its own machine)."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:
        return True
    return number.version == 4 and not number.is_loopback
