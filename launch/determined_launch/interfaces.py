"""Finds the network interface of an address, for launchers that need an interface by name."""

import array
import contextlib
import fcntl
import socket
import struct
from collections.abc import Mapping
from pathlib import Path

from determined_launch import environment
from determined_launch.errors import LaunchError

_SIOCGIFADDR = 0x8915
_SIOCGIFCONF = 0x8912
_IFREQ = 40


def all_addresses() -> list[tuple[str, str]]:
    """Returns ``(interface, address)`` for each address of this machine."""
    return [*_version_4(), *_version_6()]


def interface_of(address: str) -> str | None:
    """Returns the interface with ``address``, which may be a host name; None if no interface here has it."""
    numbers = {address}
    with contextlib.suppress(OSError):
        numbers |= {str(found[4][0]) for found in socket.getaddrinfo(address, None)}
    return next((name for name, number in all_addresses() if number in numbers), None)


def choose(environ: Mapping[str, str], own_address: str) -> str | None:
    """Returns the configured interface, else the one with this container's address.

    Raises LaunchError if it is missing.
    """
    configured = environ.get(environment.NETWORK_INTERFACE)
    if configured:
        check(configured, environment.NETWORK_INTERFACE)
        return configured
    return interface_of(own_address)


def check(names: str, said_by: str) -> None:
    """Raises LaunchError if an interface of a comma list is not on this machine; the text lists those that are."""
    here = {name for _, name in socket.if_nameindex()}
    for name in names.split(","):
        if name and name not in here:
            addresses = all_addresses()
            listed = ", ".join(
                f"{one} ({', '.join(a for n, a in addresses if n == one) or 'no address'})" for one in sorted(here)
            )
            raise LaunchError(
                f"{said_by} names the network interface {name}, which this machine does not have; it has: {listed}"
            )


def variables(environ: Mapping[str, str], own_address: str) -> dict[str, str]:
    """Returns the variables that tell gloo, and NCCL if the user chose one, the interface to the other machines."""
    name = choose(environ, own_address)
    added = {}
    if name and environment.GLOO_INTERFACE not in environ:
        added[environment.GLOO_INTERFACE] = name
    if environ.get(environment.NETWORK_INTERFACE) and environment.NCCL_INTERFACE not in environ and name:
        added[environment.NCCL_INTERFACE] = name
    return added


def _version_4() -> list[tuple[str, str]]:
    room = array.array("B", bytes(_IFREQ * 256))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            request = struct.pack("iL", len(room), room.buffer_info()[0])
            used = struct.unpack("iL", fcntl.ioctl(probe, _SIOCGIFCONF, request))[0]
        except OSError:
            return _one_each(probe)
    data = room.tobytes()[:used]
    return [
        (data[at : at + 16].partition(b"\0")[0].decode(), socket.inet_ntoa(data[at + 20 : at + 24]))
        for at in range(0, used, _IFREQ)
    ]


def _one_each(probe: socket.socket) -> list[tuple[str, str]]:
    """Returns the first address of each interface, for machines that cannot list all addresses."""
    pairs = []
    for _, name in socket.if_nameindex():
        with contextlib.suppress(OSError):
            answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            pairs.append((name, socket.inet_ntoa(answer[20:24])))
    return pairs


def _version_6() -> list[tuple[str, str]]:
    try:
        lines = Path("/proc/net/if_inet6").read_text().splitlines()
    except OSError:
        return []
    words = [line.split() for line in lines]
    return [(word[5], socket.inet_ntop(socket.AF_INET6, bytes.fromhex(word[0]))) for word in words if len(word) > 5]
