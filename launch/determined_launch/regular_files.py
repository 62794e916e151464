"""Reads files that a task can replace: only regular files, without blocking, and up to a size limit."""

import errno
import os
import stat
from pathlib import Path


def read_regular(path: "str | Path", limit: int) -> bytes:
    """Returns the whole content.

    Raises OSError for a file that is missing, larger than ``limit`` bytes, or not a regular file: opening a fifo would
    wait for its writer, and a symbolic link may lead anywhere.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        pieces = []
        left = limit + 1  # a file may grow while it is read
        while left > 0 and (piece := os.read(descriptor, min(left, 1 << 20))):
            pieces.append(piece)
            left -= len(piece)
        if left <= 0:
            raise OSError(errno.EFBIG, f"larger than {limit} bytes", str(path))
        return b"".join(pieces)
    finally:
        os.close(descriptor)
