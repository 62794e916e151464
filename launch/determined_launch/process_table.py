"""Reads the processes of this machine from ``/proc``.

Imports little: every task's shim loads this module when it starts, and ``dataclasses`` and ``pathlib`` would be a
quarter of what it loads.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

_PROC = "/proc"


class Process(NamedTuple):
    """One process.

    ``started`` is in clock ticks since boot; pid and start time together identify a process uniquely.
    """

    pid: int
    parent: int
    state: str
    threads: int
    started: int

    @property
    def is_alive(self) -> bool:
        """Returns True while a thread lives.

        A process whose first thread ended looks like a zombie while its other threads run.
        """
        return self.state not in "ZX" or self.threads > 1


def find(pid: int) -> "Process | None":
    """Returns the process ``pid``, None if there is none."""
    try:
        fields = _content(pid, "stat").rpartition(b")")[2].decode().split()
    except OSError:
        return None
    return Process(pid, int(fields[1]), fields[0], int(fields[17]), int(fields[19]))


def pids() -> list[int]:
    """Returns the pids of all processes; empty without a ``/proc``."""
    try:
        return [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return []


def living() -> Iterator[Process]:
    """Returns all processes that are alive."""
    return (process for pid in pids() if (process := find(pid)) is not None and process.is_alive)


def children(pid: int) -> list[int]:
    """Returns the pids of the living children of ``pid``."""
    return [process.pid for process in living() if process.parent == pid]


def descendants(root: int) -> list[int]:
    """Returns the pids of the living processes below ``root``, parents before their children.

    A zombie still leads to its children.
    """
    by_parent: dict[int, list[Process]] = {}
    for pid in pids():
        process = find(pid)
        if process is not None:
            by_parent.setdefault(process.parent, []).append(process)
    below: list[int] = []
    waiting, seen = [root], {root}
    while waiting:
        for process in by_parent.get(waiting.pop(0), ()):
            if process.pid not in seen:  # the table is not an atomic snapshot, so a pid may appear twice
                seen.add(process.pid)
                waiting.append(process.pid)
                below += [process.pid] if process.is_alive else []
    return below


def command_line(pid: int) -> list[bytes]:
    """Returns the command line of a process as a list of words; empty if the process has ended."""
    line = _read(pid, "cmdline")
    return line.split(b"\0") if line else []


def environment(pid: int) -> dict[str, str]:
    """Returns the initial environment of a process; empty if it has ended or belongs to another user.

    Bytes that are not UTF-8 become what ``os.fsencode`` turns back.
    """
    pairs = os.fsdecode(_read(pid, "environ")).split("\0")
    return {name: value for name, separator, value in (pair.partition("=") for pair in pairs) if separator}


def kernel_text(pid: int, name: str) -> str:
    """Returns the content of the file ``name`` of a process, such as ``wchan``; empty if there is none."""
    text = _read(pid, name).decode(errors="replace").strip()
    return "" if text == "0" else text


def catches(pid: int, number: int) -> bool:
    """Returns True if a process has a handler for signal ``number``."""
    lines = _read(pid, "status").decode(errors="replace").splitlines()
    mask = next((line.split()[1] for line in lines if line.startswith("SigCgt:")), "0")
    return bool(int(mask, 16) >> (number - 1) & 1)


def _read(pid: int, name: str) -> bytes:
    try:
        return _content(pid, name)
    except OSError:
        return b""


def _content(pid: int, name: str) -> bytes:
    with open(f"{_PROC}/{pid}/{name}", "rb") as file:
        return file.read()
