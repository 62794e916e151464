"""Finds the processes that carry a container's id, ends processes, and sets attributes of this one.

Standard library only: the shim uses it too.
"""

import ctypes
import os
import signal
import time
from collections.abc import Callable, Sequence

from determined_launch import process_table

_ARG_START, _ARG_END = 45, 46
"""Places in ``/proc/PID/stat`` after the name of the program; see proc(5)."""
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36

libc = ctypes.CDLL(None, use_errno=True)


def become_subreaper() -> None:
    """Makes orphaned descendants children of this process, even if they left the session."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int) -> None:
    """Makes the kernel kill this process when its parent ends. ``parent`` is the pid before the fork, 0 if unknown."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent and os.getppid() != parent:
        os._exit(1)


def become_untraceable() -> None:
    """Keeps processes of the same user from attaching to this one, until it executes another program."""
    _prctl(_PR_SET_DUMPABLE, 0)


def replace_command_line(words: Sequence[str]) -> None:
    """Replaces the words that ``ps`` shows of this process, in the room that they take; what is longer is cut off.

    Does nothing where the kernel does not say where they are.
    """
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[_ARG_START]), int(fields[_ARG_END])
    except (OSError, IndexError, ValueError):
        return
    room = end - start - 1
    if start and room > 0:
        text = b"".join(word.encode() + b"\0" for word in words)[:room]
        ctypes.memmove(start, text.ljust(room, b"\0"), room)


def marked(name: str, value: str) -> set[int]:
    """Returns living processes other than this one whose initial environment has ``name=value``."""
    found = {pid for pid in process_table.pids() if process_table.environment(pid).get(name) == value}
    living = ((pid, process_table.find(pid)) for pid in found - {os.getpid()})
    return {pid for pid, process in living if process is not None and process.is_alive}


def kill_all(find: Callable[[], set[int]], *, patience: float = 5.0) -> set[int]:
    """Kills what ``find`` returns until it returns nothing; returns the processes that survived.

    All are stopped before the first is killed, so that none can fork, or notice a sibling's death, in between.
    """
    until = time.monotonic() + patience
    while pids := find():
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                try:
                    os.kill(pid, number)
                except (ProcessLookupError, PermissionError):
                    pass
        if time.monotonic() > until:
            return pids
        time.sleep(0.002)
    return set()


def _prctl(option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
