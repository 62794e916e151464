"""Finds processes of this machine in /proc."""

import contextlib
import os
import signal
import time
from pathlib import Path


def environ_of(pid: int) -> dict[str, str]:
    """Returns the environment that a process was started with; empty if it has ended."""
    try:
        data = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.decode(errors="replace").partition("=") for item in data.split(b"\0") if item)
    return {name: value for name, _, value in pairs}


def command_of(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def carriers(cluster_id: str, task_id: str) -> list[int]:
    """Returns the living processes of all allocations of a task. Two clusters may use the same task id."""

    def carries(environ: dict[str, str]) -> bool:
        allocation = environ.get("DET_ALLOCATION_ID", "").rpartition(".")[0]
        return allocation == task_id and environ.get("DET_CLUSTER_ID") == cluster_id

    return [pid for pid in _all() if carries(environ_of(pid)) and _lives(pid)]


def below(pids: set[int]) -> set[int]:
    """Returns ``pids`` and every living process below them."""
    parents = {pid: parent_of(pid) for pid in _all()}
    descendants, added = set(pids), set(pids)
    while added:
        added = {pid for pid, parent in parents.items() if parent in added} - descendants
        descendants |= added
    return descendants - pids


def without_parents(pids: list[int]) -> list[int]:
    """Returns the ``pids`` whose parent is not one of them."""
    return [pid for pid in pids if parent_of(pid) not in (0, *pids)]


def shims(folder: Path) -> list[int]:
    """Returns the shims whose orders lie in ``folder``. Of a shim that has forked, only the first process."""
    pids = [
        pid
        for pid in _all()
        if any(w.endswith("shim.py") for w in command_of(pid))
        and any(w.startswith(str(folder)) for w in command_of(pid))
    ]
    return without_parents(pids)


def kill_below(folder: Path) -> None:
    """Kills all shims of ``folder`` and all tasks with a run folder in it."""
    mark = str(folder)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        pids = [pid for pid in _all() if _lives(pid) and environ_of(pid).get("DET_RUN_DIR", "").startswith(mark)]
        pids += shims(folder)
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
