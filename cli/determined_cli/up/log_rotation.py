"""Rotation of the logs of `det up` by size.

The programs write into descriptors that they were given and know no file name, so a log is copied and then emptied in
place. Their descriptors append, so they go on at its new end. A line that is written between the two is lost.
"""

import contextlib
import os
from pathlib import Path

MAX_BYTES = 16 << 20
KEPT = 3
"""Number of rotated logs that are kept of each log: ``master.log.1`` is the newest."""
_CHUNK = 1 << 20


def rotate(log: Path, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> bool:
    """Rotates ``log`` if it has more than ``max_bytes``. On a full disk its content is dropped. True if rotated."""
    try:
        descriptor = os.open(log, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb+") as file:
        size = os.fstat(descriptor).st_size
        if size <= max_bytes:
            return False
        try:
            for number in range(kept - 1, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    os.replace(_older(log, number), _older(log, number + 1))
            _copy(descriptor, max(0, size - max_bytes), _older(log, 1))
        except OSError:
            pass
        file.truncate(0)
    return True


def _older(log: Path, number: int) -> Path:
    return log.with_name(f"{log.name}.{number}")


def _copy(source: int, at: int, target: Path) -> None:
    """Copies from offset ``at`` to the end, so that a log that has grown much in one second is bounded too."""
    with contextlib.suppress(FileNotFoundError):
        target.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(target, flags, 0o600), "wb") as file:
        try:
            while data := os.pread(source, _CHUNK, at):
                file.write(data)
                at += len(data)
        except OSError:
            target.unlink()
            raise
