"""Detects that a worker ran out of memory, by the kernel's counters or by its own output."""

import re
import signal
from collections.abc import Sequence
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUP = Path("/proc/self/cgroup")
VMSTAT = Path("/proc/vmstat")
_KILLED = 128 + signal.SIGKILL
_WORDS = re.compile(
    r"\bMemoryError\b|can't allocate memory|[Cc]annot allocate memory|CUDA out of memory|HIP out of memory"
    r"|OutOfMemoryError|DataLoader worker \(pid.*\) is killed by signal: Killed"
)


class KernelKills:
    """Counts the kernel's out-of-memory kills in this process's control group or on the machine."""

    def __init__(self) -> None:
        self._source = _source()
        self._before = _count(self._source)

    def have_risen(self) -> bool:
        return _count(self._source) > self._before


def is_cause(code: int, last_lines: Sequence[str], kills: KernelKills) -> bool:
    """Returns True if a worker with this exit code ran out of memory. A shell reports its child's SIGKILL as 137."""
    if code == _KILLED and kills.have_risen():
        return True
    return code != 0 and any(_WORDS.search(line) for line in last_lines)


def _source() -> Path:
    """Returns the file with the counter: of version 2, of version 1, or of the machine for the root group."""
    try:
        lines = OWN_CGROUP.read_text().splitlines()
    except OSError:
        return VMSTAT
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, name = CGROUPS, "memory.events"  # the root group of version 2 has no counter
        elif "memory" in controllers.split(",") and path != "/":
            top, name = CGROUPS / "memory", "memory.oom_control"
        else:
            continue
        # in a container the path may be the host's while the group's files are at the top
        for source in (top / path.lstrip("/") / name, top / name):
            if source.exists():
                return source
    return VMSTAT


def _count(source: Path) -> int:
    try:
        lines = source.read_text().splitlines()
    except OSError:
        return 0
    return next((int(words[1]) for words in map(str.split, lines) if words[:1] == ["oom_kill"]), 0)
