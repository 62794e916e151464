"""Checks that a port is free on this machine; names the process that holds it if ``/proc`` shows it."""

import contextlib
import os
import secrets
import socket
from pathlib import Path

from determined_launch.errors import LaunchError

RESERVABLE = range(25_500, 32_768)
"""Above the ports of the allocations' blocks, below those that the kernel gives to outgoing connections."""
_LISTEN = "0A"
_MARK = "\0determined.port.{}"


def check(port: int, purpose: str) -> None:
    """Raises LaunchError with the port and its holder if the port cannot be bound. Port 0 means any port."""
    for family, address in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind((address, port))
                probe.listen(1)
        except OSError as error:
            if family == socket.AF_INET6 and not _is_taken(port):
                continue  # a machine without IPv6
            raise LaunchError(_text(port, purpose, error)) from None


def free() -> int:
    """Returns a port that is free at this moment."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Reservation:
    """Ports that no other reservation on this machine has, until ``close`` or the end of this process.

    A reserved port is not bound: whoever it is for binds it as any other. The mark is an abstract Unix socket, which
    all processes of one network see and the kernel removes with its owner.
    """

    def __init__(self, count: int) -> None:
        self._marks: list[socket.socket] = []
        self.ports: list[int] = []
        first = secrets.randbelow(len(RESERVABLE))  # a port in use by another process is not met again and again
        for turn in range(len(RESERVABLE)):
            if len(self.ports) == count:
                return
            self._take(RESERVABLE[(first + turn) % len(RESERVABLE)])
        if len(self.ports) < count:
            self.close()
            raise LaunchError(
                f"this machine has no {count} free ports from {RESERVABLE.start} to {RESERVABLE.stop - 1}"
            )

    def __enter__(self) -> list[int]:
        return self.ports

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives the ports back."""
        for mark in self._marks:
            mark.close()

    def _take(self, port: int) -> None:
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            mark.bind(_MARK.format(port))
            check(port, "a process of a role")
        except (OSError, LaunchError):
            mark.close()
        else:
            self._marks.append(mark)
            self.ports.append(port)


def _text(port: int, purpose: str, error: OSError) -> str:
    holder = _holder(port)
    by = f" by process {holder[0]} ({holder[1]})" if holder else ""
    if not _is_taken(port):
        return f"cannot use port {port} for {purpose} on this machine: {(error.strerror or str(error)).lower()}"
    return f"port {port} for {purpose} is in use on this machine{by}"


def _is_taken(port: int) -> bool:
    return bool(_sockets(port))


def _sockets(port: int) -> set[str]:
    """Returns the inodes of the sockets that listen on ``port``."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        try:
            lines = Path("/proc/net", table).read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            words = line.split()
            if words[3] == _LISTEN and int(words[1].rpartition(":")[2], 16) == port:
                inodes.add(words[9])
    return inodes


def _holder(port: int) -> tuple[int, str] | None:
    wanted = {f"socket:[{inode}]" for inode in _sockets(port)}
    for process in Path("/proc").iterdir() if wanted else ():
        if process.name.isdigit() and wanted & _links(process / "fd"):
            try:
                return int(process.name), (process / "comm").read_text().strip()
            except OSError:
                continue
    return None


def _links(folder: Path) -> set[str]:
    links = set()
    try:
        for entry in folder.iterdir():
            with contextlib.suppress(OSError):
                links.add(os.readlink(entry))
    except OSError:
        pass  # another user's process, or gone
    return links
