"""Machines for tests: network namespaces of this one, each with its own address, host name and hosts file. Root."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REMOTE_SHELLS = ("ssh", "sshd", "pdsh", "rsh", "mpirun", "srun")


@dataclass(frozen=True)
class Machine:
    """``prefix`` is put in front of a command that is to run there."""

    name: str
    address: str

    @property
    def prefix(self) -> list[str]:
        rename = f'hostname {self.name}; exec "$@"'
        return ["ip", "netns", "exec", self.name, "unshare", "--uts", "sh", "-c", rename, "sh"]


@dataclass(frozen=True)
class Network:
    """A bridge with machines on it; ``gateway`` is this machine's own address there."""

    gateway: str
    machines: tuple[Machine, ...]

    def cut(self, machine: Machine) -> None:
        """Takes the machine off the network, as a pulled cable does."""
        _ip("-n", machine.name, "link", "set", "eth0", "down")

    def mend(self, machine: Machine) -> None:
        _ip("-n", machine.name, "link", "set", "eth0", "up")


@contextlib.contextmanager
def network(count: int) -> Iterator[Network]:
    """``count`` machines that see each other and this one, and nothing else."""
    number = os.getpid() % 250 + 1
    bridge = f"dt{os.getpid() % 10**6}"
    subnet = f"10.78.{number}"
    machines = tuple(Machine(f"{bridge}m{n}", f"{subnet}.{10 + n}") for n in range(1, count + 1))
    with contextlib.ExitStack() as stack:
        _ip("link", "add", bridge, "type", "bridge")
        stack.callback(_ip, "link", "del", bridge)
        _ip("addr", "add", f"{subnet}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        for machine in machines:
            _join(machine, bridge, machines, stack)
        yield Network(f"{subnet}.1", machines)


def _join(machine: Machine, bridge: str, machines: tuple[Machine, ...], stack: contextlib.ExitStack) -> None:
    _ip("netns", "add", machine.name)
    stack.callback(_ip, "netns", "del", machine.name)
    hosts = Path("/etc/netns", machine.name, "hosts")
    hosts.parent.mkdir(parents=True, exist_ok=True)
    # As real machines have it: its own name leads to its own address, the others' to theirs.
    hosts.write_text("".join(["127.0.0.1 localhost\n", *(f"{m.address} {m.name}\n" for m in machines)]))
    stack.callback(_forget, hosts)
    outer = f"v{machine.name}"[:15]
    _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", machine.name)
    _ip("link", "set", outer, "master", bridge, "up")
    _ip("-n", machine.name, "addr", "add", f"{machine.address}/24", "dev", "eth0")
    for device in ("lo", "eth0"):
        _ip("-n", machine.name, "link", "set", device, "up")


def path_without_remote_shells(folder: Path, *first: Path) -> str:
    """A PATH with every program of this machine but those that start something on another."""
    folder.mkdir()
    for source in os.environ["PATH"].split(":"):
        if not os.path.isdir(source):
            continue
        for entry in os.scandir(source):
            if entry.name.split("-")[0] not in REMOTE_SHELLS and not os.path.lexists(folder / entry.name):
                (folder / entry.name).symlink_to(entry.path)
    return ":".join(map(str, (*first, folder)))


def remote_shells_running() -> list[str]:
    """Programs of the system that start something on another machine, by what is executed, not by their names."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and Path(os.readlink(f"/proc/{name}/exe")).name in REMOTE_SHELLS:
                found.append(Path(f"/proc/{name}/cmdline").read_text().replace("\0", " "))
    return found


def _forget(hosts: Path) -> None:
    hosts.unlink(missing_ok=True)
    hosts.parent.rmdir()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)
