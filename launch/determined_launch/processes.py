"""Signals and ends the processes below this one, so that nothing that was started here is left behind."""

import contextlib
import ctypes
import os
import signal
import time

from determined_launch import process_table

_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """From now on a process below this one whose parent ends becomes a child of this one, so that it can be found."""
    with contextlib.suppress(OSError, AttributeError):  # Linux alone has it
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def kill_below(root: int, *, within: float = 5.0) -> None:
    """Kills until nothing lives below ``root``; what forks meanwhile is found in the next round."""
    until = time.monotonic() + within
    while (pids := process_table.descendants(root)) and time.monotonic() < until:
        for pid in pids:
            send(pid, signal.SIGKILL)
        time.sleep(0.01)


def wrappers_below(root: int) -> list[int]:
    """Pids of the ``wrap_rank`` processes below ``root``, those inside workers left out."""
    found: list[int] = []
    inner: set[int] = set()
    for pid in process_table.descendants(root):
        if pid not in inner and b"determined_launch.wrap_rank" in process_table.command_line(pid)[1:6]:
            found.append(pid)
            inner.update(process_table.descendants(pid))
    return found


def send(pid: int, number: int) -> None:
    """Sends a signal; a process that has ended or is another user's is left alone."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
