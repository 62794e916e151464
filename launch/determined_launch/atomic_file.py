"""Writes a file completely or not at all."""

import os
import threading
from contextlib import suppress


def write_atomic(
    path: "str | os.PathLike[str]",
    text: str,
    *,
    modified: "float | None" = None,
    is_durable: bool = True,
    mode: int = 0o600,
) -> None:
    """Replaces ``path`` by a file with ``text`` (UTF-8), which is private unless ``mode`` says otherwise.

    ``modified`` is the modification time of the file, in seconds since the epoch. A durable file survives a power
    failure. Readers see the old content or the new content, never a part. Raises OSError and then leaves the old file
    unchanged.
    """
    folder, name = os.path.split(os.fspath(path))
    draft = os.path.join(folder, f".{name}.{os.getpid()}-{threading.get_ident()}")
    _remove(draft)  # left by a killed process with this pid
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            if is_durable:
                os.fsync(file.fileno())
        if modified is not None:
            os.utime(draft, (modified, modified))
        os.replace(draft, path)
    finally:
        _remove(draft)


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)
