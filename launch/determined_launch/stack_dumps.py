"""Collects stack dumps of this container's workers, or the state that ``/proc`` shows."""

import re
import signal
import time
from pathlib import Path

from determined_launch import process_table, processes
from determined_launch.regular_files import read_regular

_DUMP = re.compile(rb'^(?:(?:Current thread|Thread) 0x|  File ")')
_SUFFIX = ".stack"
MAX_DUMP_BYTES = 4 << 20
_WAIT_SECONDS = 3.0
_QUIET_SECONDS = 0.3
_STEP_SECONDS = 0.05


class DumpCollector:
    """Stores the output of a worker's ``faulthandler`` beside its step file; with None it stores nothing."""

    def __init__(self, step_file: "str | None") -> None:
        self._path = Path(step_file + _SUFFIX) if step_file else None

    def feed(self, lines: "list[bytes]", prefix: int) -> None:
        """Adds lines; the first ``prefix`` bytes of each line belong to the wrapper."""
        if self._path is None:
            return
        dump = [line[prefix:] for line in lines if _DUMP.match(line[prefix:])]
        if dump:
            try:
                with open(self._path, "ab") as file:
                    file.write(b"".join(dump))
            except OSError:
                self._path = None


def collect(root: int, folder: Path) -> "dict[int, str]":
    """Returns rank → stack of the workers below ``root`` with step files in ``folder``.

    The log shows the dumps too.
    """
    for old in folder.glob(f"rank-*{_SUFFIX}"):
        old.unlink(missing_ok=True)
    dumps: dict[int, str] = {}
    asked = 0
    for wrapper in processes.wrappers_below(root):
        workers = _who_dumps(wrapper)
        for pid in workers:
            processes.send(pid, signal.SIGUSR1)
        asked += bool(workers)
        rank = _rank_of(wrapper)
        if not workers and rank is not None:
            dumps[rank] = _told_by_proc(wrapper)
            for line in dumps[rank].splitlines():
                print(f"[rank={rank}] {line}", flush=True)
    return dumps | (_dumps(folder, asked) if asked else {})


def _who_dumps(wrapper: int) -> "list[int]":
    """Returns the outermost process with a handler for the signal; forked processes inherit the handler."""
    waiting = process_table.children(wrapper)
    pids = []
    while waiting:
        pid = waiting.pop(0)
        if process_table.catches(pid, signal.SIGUSR1):
            pids.append(pid)
        else:
            waiting += process_table.children(pid)
    return pids


def _dumps(folder: Path, expected: int) -> "dict[int, str]":
    """Waits until every requested worker has dumped and no more output arrives."""
    began = changed = time.monotonic()
    sizes: dict[str, int] = {}
    while time.monotonic() - began < _WAIT_SECONDS:
        time.sleep(_STEP_SECONDS)
        now = {path.name: path.stat().st_size for path in folder.glob(f"rank-*{_SUFFIX}")}
        if now != sizes:
            sizes, changed = now, time.monotonic()
        elif len(sizes) >= expected and time.monotonic() - changed > _QUIET_SECONDS:
            break
    return {int(name.removeprefix("rank-").removesuffix(_SUFFIX)): _dump_text(folder / name) for name in sizes}


def _dump_text(path: Path) -> str:
    try:
        return read_regular(path, MAX_DUMP_BYTES).decode(errors="replace")
    except OSError as problem:
        return f"(cannot read the dump: {problem})"


def _rank_of(wrapper: int) -> "int | None":
    """Returns the rank as the wrapper itself determines it."""
    rank = processes.rank_of_fork(wrapper)
    if rank is not None:
        return rank
    words = [word.decode(errors="replace") for word in process_table.command_line(wrapper)]
    try:
        names = words[words.index("--") - 1]
    except ValueError:
        return None
    values = process_table.environment(wrapper)
    if names.isdigit():
        return int(names)
    return next((int(values[name]) for name in names.split(",") if values.get(name, "").isdigit()), None)


def _told_by_proc(wrapper: int) -> str:
    lines = []
    for pid in process_table.descendants(wrapper):
        name = b" ".join(process_table.command_line(pid)[:3]).decode(errors="replace")
        lines.append(f"process {pid} ({name}): {process_table.kernel_text(pid, 'wchan') or 'running'}")
        lines += [f"  {line}" for line in process_table.kernel_text(pid, "stack").splitlines()]
    return "\n".join(lines)
