"""Machines for a whole cluster: those of ``machines`` and this one on one switch, without remote shells. Needs root."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.machines import Machine, gateway_of, machines

REMOTE_SHELLS = ("ssh", "sshd", "pdsh", "rsh", "mpirun", "srun")


@dataclass(frozen=True)
class Network:
    """Machines, and the address of this machine in their network."""

    gateway: str
    machines: tuple[Machine, ...]

    def cut(self, machine: Machine) -> None:
        """Takes the machine off the network, like a pulled cable."""
        _switch(machine, "down")

    def mend(self, machine: Machine) -> None:
        _switch(machine, "up")

    def remote_shells(self) -> list[str]:
        """Returns the remote shells that run on these machines, by their executables."""
        namespaces = {os.stat(f"/run/netns/{machine.namespace}").st_ino for machine in self.machines}
        commands = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                is_shell = name.isdigit() and Path(os.readlink(f"/proc/{name}/exe")).name in REMOTE_SHELLS
                if is_shell and os.stat(f"/proc/{name}/ns/net").st_ino in namespaces:
                    commands.append(Path(f"/proc/{name}/cmdline").read_text().replace("\0", " "))
        return commands


@contextlib.contextmanager
def network(count: int) -> Iterator[Network]:
    """Yields ``count`` machines that reach only each other and this one."""
    with machines(count, gateway=True) as created:
        yield Network(gateway_of(created[0]), tuple(created))


def _switch(machine: Machine, to: str) -> None:
    subprocess.run(["ip", "-n", machine.namespace, "link", "set", "eth0", to], check=True, capture_output=True)


def path_without_remote_shells(folder: Path, *first: Path) -> str:
    """Returns a PATH with every program of this machine except remote shells."""
    folder.mkdir()
    for source in os.environ["PATH"].split(":"):
        if not os.path.isdir(source):
            continue
        for entry in os.scandir(source):
            if entry.name.split("-")[0] not in REMOTE_SHELLS and not os.path.lexists(folder / entry.name):
                (folder / entry.name).symlink_to(entry.path)
    return ":".join(map(str, (*first, folder)))
