"""Reads the processes of this machine from ``/proc``."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """One process. ``started`` is in clock ticks since boot; with the pid it names a process once and for all."""

    pid: int
    parent: int
    state: str
    threads: int
    started: int

    @property
    def is_alive(self) -> bool:
        """A process whose first thread has ended looks like a zombie while its other threads go on."""
        return self.state not in "ZX" or self.threads > 1


def find(pid: int) -> "Process | None":
    """The process ``pid``, None if there is none."""
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].decode().split()
    except OSError:
        return None
    return Process(pid, int(fields[1]), fields[0], int(fields[17]), int(fields[19]))


def pids() -> list[int]:
    """The pids of all processes; empty without a ``/proc``."""
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return []


def living() -> Iterator[Process]:
    """Every process that is alive."""
    return (process for pid in pids() if (process := find(pid)) is not None and process.is_alive)


def children(pid: int) -> list[int]:
    """Pids of the living children of ``pid``."""
    return [process.pid for process in living() if process.parent == pid]


def descendants(root: int) -> list[int]:
    """Pids of the living processes below ``root``, parents before their children.

    A process that has ended and is not yet waited for still leads to its children.
    """
    by_parent: dict[int, list[Process]] = {}
    for pid in pids():
        process = find(pid)
        if process is not None:
            by_parent.setdefault(process.parent, []).append(process)
    found: list[int] = []
    waiting, seen = [root], {root}
    while waiting:
        for process in by_parent.get(waiting.pop(0), ()):
            if process.pid not in seen:  # the table is not read at one moment, so a pid may appear twice
                seen.add(process.pid)
                waiting.append(process.pid)
                found += [process.pid] if process.is_alive else []
    return found


def command_line(pid: int) -> list[bytes]:
    """The words of a process' command line, empty if it has ended."""
    line = _read(pid, "cmdline")
    return line.split(b"\0") if line else []


def environment(pid: int) -> dict[str, str]:
    """The variables that a process was started with; empty if it has ended or is another user's."""
    pairs = _read(pid, "environ").decode(errors="replace").split("\0")
    return {name: value for name, separator, value in (pair.partition("=") for pair in pairs) if separator}


def kernel_text(pid: int, name: str) -> str:
    """What the kernel tells of a process in the file ``name``, such as ``wchan``; empty if nothing."""
    text = _read(pid, name).decode(errors="replace").strip()
    return "" if text == "0" else text


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler of its own for signal ``number``."""
    lines = _read(pid, "status").decode(errors="replace").splitlines()
    mask = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(mask, 16) >> (number - 1) & 1)


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""
