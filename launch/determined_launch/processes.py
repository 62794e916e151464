"""The processes below this one, as ``/proc`` tells; nothing that was started here is left behind."""

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_PROC = Path("/proc")


def adopt_orphans() -> None:
    """From now on a process below this one whose parent ends becomes a child of this one, so that it can be found."""
    with contextlib.suppress(OSError, AttributeError):  # Linux alone has it
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def below(root: int) -> list[int]:
    """Pids of the living processes below ``root``, parents before children."""
    children: dict[int, list[int]] = {}
    for pid, parent, state in _all():
        if state not in "ZX":
            children.setdefault(parent, []).append(pid)
        else:
            children.setdefault(parent, [])
    found, waiting = [], [root]
    while waiting:
        mine = children.get(waiting.pop(0), [])
        found += mine
        waiting += mine
    return found


def kill_below(root: int, *, within: float = 5.0) -> None:
    """Kills until nothing lives below ``root``; what forks meanwhile is found in the next round."""
    until = time.monotonic() + within
    while (pids := below(root)) and time.monotonic() < until:
        for pid in pids:
            send(pid, signal.SIGKILL)
        time.sleep(0.01)


def wrappers_below(root: int) -> list[int]:
    """Pids of the ``wrap_rank`` processes below ``root``, those inside workers left out."""
    found: list[int] = []
    inner: set[int] = set()
    for pid in below(root):
        if pid not in inner and b"determined_launch.wrap_rank" in command_line(pid)[1:6]:
            found.append(pid)
            inner.update(below(pid))
    return found


def command_line(pid: int) -> list[bytes]:
    """Empty where the process has ended."""
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


def send(pid: int, number: int) -> None:
    """Sends a signal; a process that has ended or is another user's is left alone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def children(pid: int) -> list[int]:
    """Pids of the living children of ``pid``."""
    return [child for child, parent, state in _all() if parent == pid and state not in "ZX"]


def catches(pid: int, number: int) -> bool:
    """Whether a process has a handler of its own for a signal."""
    try:
        text = (_PROC / str(pid) / "status").read_text()
    except OSError:
        return False
    mask = next((line.split()[1] for line in text.splitlines() if line.startswith("SigCgt:")), "0")
    return bool(int(mask, 16) >> (number - 1) & 1)


def _all() -> Iterator[tuple[int, int, str]]:
    try:
        names = os.listdir(_PROC)
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            text = (_PROC / name / "stat").read_text(errors="replace")
        except OSError:
            continue
        state, parent = text.rpartition(")")[2].split()[:2]
        yield int(name), int(parent), state
