"""A lock file that contains the pid and the host of its holder. The kernel releases the lock when that process ends."""

import fcntl
import os
import socket
import time
from pathlib import Path

_PID_BYTES, _HOST_BYTES = 32, 255
"""The pid is filled up with spaces: programs that know nothing of the host read these bytes alone."""
_PATIENCE_SECONDS = 0.2
"""Those who ask for the holder take the lock for a moment."""


class LockHeld(Exception):
    """Raised if another process holds the lock; ``pid`` is None if the holder has not written its pid yet."""

    def __init__(self, path: Path, pid: "int | None") -> None:
        super().__init__(f"{path} is held by pid {pid or 'unknown'}")
        self.pid = pid


class PidLock:
    """The lock at ``path``, held from construction until ``close``. Raises LockHeld if another process has it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, PidLock(Path(folder, "lock")):
    ...     holder(Path(folder, "lock")) == os.getpid()
    True
    """

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + _PATIENCE_SECONDS
        try:
            while not _locked(self._file, fcntl.LOCK_EX):
                if time.monotonic() >= until:
                    raise LockHeld(path, _pid(self._file))
                time.sleep(0.01)
        except (LockHeld, OSError):  # the latter from a file system without locks
            os.close(self._file)
            raise
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid():<{_PID_BYTES}}{socket.gethostname()}".encode(), 0)

    def __enter__(self) -> "PidLock":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def fileno(self) -> int:
        """Returns the descriptor of the file."""
        return self._file

    def close(self) -> None:
        """Releases the lock; the file stays, empty."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


def holder(path: Path) -> "int | None":
    """Returns the pid of the process that holds the lock at ``path``; None if nobody does, or if it cannot be told."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _locked(file, fcntl.LOCK_SH) else _pid(file)
    except OSError:
        return None
    finally:
        os.close(file)


def other_host(path: Path) -> "str | None":
    """Returns the host where the holder of the lock at ``path`` runs, if that is not this one: its pid means nothing
    here. None if it is this host, or if it cannot be told."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        host = os.pread(file, _HOST_BYTES, _PID_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(file)
    return host if host and host != socket.gethostname() else None


def _locked(file: int, kind: int) -> bool:
    """Locks a file; returns False if another process has locked it."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _pid(file: int) -> "int | None":
    text = os.pread(file, _PID_BYTES, 0).decode("ascii", "replace").strip()
    return int(text) if text.isascii() and text.isdigit() else None
