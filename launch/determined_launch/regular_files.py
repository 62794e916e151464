"""Reads files that a task can replace: only regular files, without blocking, and up to a size limit."""

import errno
import os
import stat
from pathlib import Path


def read_regular(path: "str | Path", limit: int, *, owner: "int | None" = None) -> bytes:
    """Returns the whole content.

    Raises OSError for a file that is missing, larger than ``limit`` bytes, or not a regular file: opening a fifo would
    wait for its writer, and a symbolic link may lead anywhere. With ``owner``, the file must belong to this uid: a
    folder on the way may be a link as well.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        if owner is not None and status.st_uid != owner:
            raise PermissionError(errno.EPERM, f"not a file of uid {owner}", str(path))
        if status.st_size > limit:
            raise OSError(errno.EFBIG, f"larger than {limit} bytes", str(path))
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


def write_regular(folder: "str | Path", name: str, data: bytes, *, owner: "int | None") -> None:
    """Overwrites or creates the file ``name`` in a folder that a task can replace. Raises OSError for any link.

    ``owner``: uid that the folder, and a file that exists, must have; None for any.
    """
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, 0o600, dir_fd=parent)
        try:
            status = os.fstat(descriptor)
            is_own = owner is None or (status.st_uid in (owner, os.geteuid()) and os.fstat(parent).st_uid == owner)
            if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1 or not is_own:
                raise OSError(errno.EINVAL, "not a regular file", name)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, data)
        finally:
            os.close(descriptor)
    finally:
        os.close(parent)
