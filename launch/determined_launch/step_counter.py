"""Step files: the number of steps of each worker of this container, and the time since the last one."""

import contextlib
import os
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from determined_launch.regular_files import read_regular

MAX_BYTES = 4096
_COUNT = struct.Struct("<Q")


@dataclass(frozen=True)
class Steps:
    """Steps of a worker.

    ``age`` is the time since the last step in seconds, or since the start if there was no step.
    """

    rank: int
    count: int
    age: float


def make(folder: Path, rank: int) -> Path | None:
    """Creates an empty step file for a rank that starts now; returns None if the disk refuses."""
    path = folder / f"rank-{rank}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        os.utime(path)
    except OSError:
        return None
    return path


def remove(path: str | None) -> None:
    """Removes the step file of a rank that has ended; the watchdog then ignores it."""
    if path:
        with contextlib.suppress(OSError):
            os.unlink(path)


def read(folder: Path) -> list[Steps]:
    """Returns the steps of every running rank, in order."""
    counts = []
    for path in folder.glob("rank-*"):
        if not path.name.removeprefix("rank-").isdigit():
            continue
        try:
            data, changed = read_regular(path, MAX_BYTES), path.stat().st_mtime
        except (OSError, IsADirectoryError):
            continue
        count = _COUNT.unpack_from(data)[0] if len(data) >= _COUNT.size else 0
        counts.append(Steps(int(path.name.removeprefix("rank-")), count, max(0.0, time.time() - changed)))
    return sorted(counts, key=lambda steps: steps.rank)
