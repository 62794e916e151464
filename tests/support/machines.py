"""Machines that are network namespaces with own address, ports, host name and /etc/hosts, and one interface name."""

import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_numbers = itertools.count()


@dataclass(frozen=True)
class Machine:
    """A network namespace. Files and pids are those of the machine that runs the tests."""

    namespace: str
    address: str
    hostname: str

    @property
    def prefix(self) -> list[str]:
        """Returns the words before a command that run it on this machine, with its host name."""
        inside = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.hostname]
        return ["ip", "netns", "exec", self.namespace, *inside]

    def command(self, argv: Sequence[str]) -> list[str]:
        """Returns the command that runs ``argv`` on this machine."""
        return [*self.prefix, *argv]


def why_not() -> str | None:
    """Returns the reason why machines cannot be created here, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    return None if shutil.which("ip") else "the program ip (Debian: iproute2) is missing"


@contextmanager
def machines(count: int, *, interfaces: Sequence[str] = (), gateway: bool = False) -> Iterator[list[Machine]]:
    """Yields ``count`` machines that reach only each other, through a switch. Removes them at the end.

    With ``gateway`` the machine that runs the tests is on the switch too, at :func:`gateway_of`.
    """
    number = next(_numbers)
    mark = f"d{os.getpid()}n{number}"
    net = f"10.{101 + os.getpid() % 97}.{(os.getpid() // 97 + number) % 251}"
    created = [Machine(f"{mark}m{i}", f"{net}.{11 + i}", f"{mark}-{i}") for i in range(count)]
    names = [*interfaces, *["eth0"] * (count - len(interfaces))]
    try:
        _ip("netns", "add", mark)
        _ip("-n", mark, "link", "add", "switch", "type", "bridge")
        _ip("-n", mark, "link", "set", "switch", "up")
        for i, machine in enumerate(created):
            _add(machine, mark, f"port{i}", names[i], created)
        if gateway:
            _join(mark, gateway_of(created[0]))
        yield created
    finally:
        for namespace in (mark, *(machine.namespace for machine in created)):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True, check=False)
            shutil.rmtree(Path("/etc/netns", namespace), ignore_errors=True)


def gateway_of(machine: Machine) -> str:
    """Returns the address of the machine that runs the tests in this machine's network."""
    return f"{machine.address.rpartition('.')[0]}.1"


def _join(switch: str, address: str) -> None:
    """Connects the switch to this machine. The cable is removed with the switch."""
    _ip("link", "add", switch, "type", "veth", "peer", "name", "gateway", "netns", switch)
    _ip("-n", switch, "link", "set", "gateway", "master", "switch", "up")
    _ip("addr", "add", f"{address}/24", "dev", switch)
    _ip("link", "set", switch, "up")


def _add(machine: Machine, switch: str, port: str, interface: str, everybody: Sequence[Machine]) -> None:
    folder = Path("/etc/netns", machine.namespace)
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["127.0.0.1 localhost", *(f"{other.address} {other.hostname}" for other in everybody)]
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    (folder / "resolv.conf").write_text("")
    _ip("netns", "add", machine.namespace)
    _ip("-n", switch, "link", "add", port, "type", "veth", "peer", "name", interface, "netns", machine.namespace)
    _ip("-n", switch, "link", "set", port, "master", "switch", "up")
    _ip("-n", machine.namespace, "addr", "add", f"{machine.address}/24", "dev", interface)
    for name in ("lo", interface):
        _ip("-n", machine.namespace, "link", "set", name, "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
