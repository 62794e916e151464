"""Signals and ends the processes below this one, so that no process that was started here remains."""

import contextlib
import ctypes
import os
import signal
import time

from determined_launch import process_table

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_WRAPPER = "wrap_rank:"


def adopt_orphans() -> None:
    """Makes this process the parent of orphaned descendants, so that they can be found."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with_parent() -> None:
    """Lets the kernel kill this process when the one that started it has ended, also where that was killed."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux has it
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def kill_below(root: int, *, within: float = 5.0) -> None:
    """Kills until no process lives below ``root``; each round finds the processes that were forked meanwhile."""
    until = time.monotonic() + within
    while (pids := process_table.descendants(root)) and time.monotonic() < until:
        for pid in pids:
            send(pid, signal.SIGKILL)
        time.sleep(0.01)


def wrappers_below(root: int) -> list[int]:
    """Returns the pids of the ``wrap_rank`` processes below ``root`` without those inside workers."""
    pids: list[int] = []
    inner: set[int] = set()
    for pid in process_table.descendants(root):
        if pid not in inner and _is_wrapper(pid):
            pids.append(pid)
            inner.update(process_table.descendants(pid))
    return pids


def wrapper_name(rank: int) -> str:
    """Returns the name of a wrapper that is a fork, whose command line is that of its parent."""
    return f"{_WRAPPER}{rank}"


def rank_of_fork(pid: int) -> int | None:
    """Returns the rank of a wrapper that is a fork."""
    rank = process_table.kernel_text(pid, "comm").removeprefix(_WRAPPER)
    return int(rank) if rank.isdigit() else None


def set_name(name: str) -> None:
    """Sets the name of this process that ``ps`` and ``top`` show; Linux keeps 15 bytes of it."""
    with contextlib.suppress(OSError), open("/proc/self/comm", "w", encoding="utf-8") as file:
        file.write(name)


def _is_wrapper(pid: int) -> bool:
    line = process_table.command_line(pid)
    return b"determined_launch.wrap_rank" in line[1:6] or (
        b"determined_launch.role_processes" in line[1:4] and rank_of_fork(pid) is not None
    )


def send(pid: int, number: int) -> None:
    """Sends a signal; ignores a process that has ended or belongs to another user."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
