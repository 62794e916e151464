"""The data folder of `det up`: where it is, whether SQLite may live there, who uses it, the password in it."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from determined.errors import DeterminedError
from determined_launch import pid_lock
from determined_launch.pid_lock import LockHeld, PidLock

NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "lustre", "beegfs", "gpfs", "ceph", "glusterfs", "9p", "afs"}
)
LOCK = "up.lock"


class InUse(DeterminedError):
    """The data folder is in use."""

    exit_code = 7


class UnfitFolder(DeterminedError):
    """The data folder cannot hold the database."""

    exit_code = 2


def default(environ: Mapping[str, str] = os.environ) -> Path:
    """``$XDG_DATA_HOME/detent``."""
    base = environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "detent"


def file_system(folder: Path, mounts: str | None = None) -> str:
    """The type of the file system that ``folder`` is on, from the kernel's own list."""
    text = mounts if mounts is not None else Path("/proc/self/mounts").read_text()
    best, kind = "", ""
    for line in text.splitlines():
        fields = line.split(" ")
        point = fields[1].replace("\\040", " ")
        inside = str(folder) == point or str(folder).startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def check_file_system(folder: Path, mounts: str | None = None) -> None:
    """Raises UnfitFolder on network and user-space file systems: SQLite's locks do not hold there."""
    kind = file_system(folder, mounts)
    if kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse"):
        raise UnfitFolder(
            f"{folder} is on {kind}, where SQLite's locks cannot be trusted and a crash may lose data; "
            f"use a local folder: det up --data /var/tmp/detent-{os.getuid()}"
        )


def make_private(folder: Path) -> Path:
    """Makes the folder and ``logs`` in it for their owner alone, also where they are there already; the latter."""
    logs = folder / "logs"
    for each in (folder, logs):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(PermissionError):  # another owner's; the master warns of it
            each.chmod(0o700)
    return logs


def open_log(path: Path) -> IO[bytes]:
    """Opens a log to be added to; only its owner may read it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "ab")


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keeps everybody else out of the folder. Raises InUse that names the pid of the one who is in."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        lock = PidLock(folder / LOCK)
    except LockHeld as error:
        raise in_use(folder, error.pid) from error
    with lock:
        yield


def in_use(folder: Path, pid: int | None) -> InUse:
    return InUse(f"{folder} is in use by det up with pid {pid or 'unknown'}; det down ends it")


def holder(folder: Path) -> int | None:
    """The pid of the supervisor that holds the folder; None where nobody does."""
    return pid_lock.holder(folder / LOCK)
