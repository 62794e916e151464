"""Step files: how many steps each worker of this container has made, and how long ago it made the last one."""

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
    """``age`` in seconds; of a worker that has made none, since it was started."""

    rank: int
    count: int
    age: float


def make(folder: Path, rank: int) -> Path | None:
    """An empty step file for a rank that starts now; ``None`` where the disk refuses."""
    path = folder / f"rank-{rank}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
        os.utime(path)
    except OSError:
        return None
    return path


def remove(path: str | None) -> None:
    """A rank that has ended is no longer waited for."""
    if path:
        with contextlib.suppress(OSError):
            os.unlink(path)


def read(folder: Path) -> list[Steps]:
    """Of every rank that runs here, in order."""
    found = []
    for path in folder.glob("rank-*"):
        if not path.name.removeprefix("rank-").isdigit():
            continue
        try:
            data, changed = read_regular(path, MAX_BYTES), path.stat().st_mtime
        except (OSError, IsADirectoryError):
            continue
        count = _COUNT.unpack_from(data)[0] if len(data) >= _COUNT.size else 0
        found.append(Steps(int(path.name.removeprefix("rank-")), count, max(0.0, time.time() - changed)))
    return sorted(found, key=lambda steps: steps.rank)
