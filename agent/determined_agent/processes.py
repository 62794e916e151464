"""Finds processes by /proc: descendants, and those that carry a container's id; and ends them all.

Standard library only: the shim uses it too.
"""

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterator

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Orphans among the descendants of this process become its children, however they left their session."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """The kernel kills this process when its parent ends; ``parent`` is the pid seen before the fork, 0 if unseen."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        os._exit(1)


def started_at(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; with the pid it names a process once and for all."""
    fields = _stat(pid)
    return None if fields is None else int(fields[19])


def descendants(root: int) -> set[int]:
    """Every living process below ``root``."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        fields = _stat(pid)
        if fields is not None and _lives(fields):
            children.setdefault(int(fields[1]), []).append(pid)
    found: set[int] = set()
    queue = [root]
    while queue:
        for pid in children.get(queue.pop(), ()):
            if pid not in found:
                found.add(pid)
                queue.append(pid)
    return found


def marked(name: str, value: str) -> set[int]:
    """Living processes, other than this one, that were started with ``name=value`` in their environment."""
    mark = f"{name}={value}".encode()
    found: set[int] = set()
    for pid in _pids():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                environ = file.read()
        except OSError:
            continue
        if pid != os.getpid() and mark in environ.split(b"\0"):
            fields = _stat(pid)
            if fields is not None and _lives(fields):
                found.add(pid)
    return found


def kill_all(find: Callable[[], set[int]], *, patience: float = 5.0) -> set[int]:
    """Kills what ``find`` finds until it finds nothing more; gives back what would not go.

    All are stopped before the first is killed, so that none can fork, or notice a sibling's death, in between.
    """
    until = time.monotonic() + patience
    while found := find():
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                try:
                    os.kill(pid, number)
                except (ProcessLookupError, PermissionError):
                    pass
        if time.monotonic() > until:
            return found
        time.sleep(0.002)
    return set()


def _prctl(option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the state on."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].decode().split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def _lives(fields: list[str]) -> bool:
    # A process whose first thread has ended looks like a zombie while its others go on.
    return fields[0] != "Z" or int(fields[17]) > 1


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())
