"""Data folder of `det up`: its path, the check of its file system, its lock, its password."""

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
    """Another supervisor uses the data folder."""

    exit_code = 7


class UnfitFolder(DeterminedError):
    """The data folder cannot hold the database."""

    exit_code = 2


def default(environ: Mapping[str, str] = os.environ) -> Path:
    """Returns the default data folder, ``$XDG_DATA_HOME/detent``."""
    base = environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    return Path(base) / "detent"


def file_system(folder: Path, mounts: str | None = None) -> str:
    """Returns the file-system type of ``folder`` from the kernel's mount table."""
    text = mounts if mounts is not None else Path("/proc/self/mounts").read_text()
    best, kind = "", ""
    for line in text.splitlines():
        fields = line.split(" ")
        point = fields[1].replace("\\040", " ")
        inside = str(folder) == point or str(folder).startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fields[2]
    return kind


def check_file_system(folder: Path, mounts: str | None = None, *, database_url: str = "") -> None:
    """Raises UnfitFolder on network and user-space file systems: SQLite's locks do not hold there.

    ``database_url``: that of the settings; a database of PostgreSQL is elsewhere.
    """
    if database_url.startswith("postgresql"):
        return
    kind = file_system(folder, mounts)
    if kind in NETWORK_FILE_SYSTEMS or kind.startswith("fuse"):
        raise UnfitFolder(
            f"{folder} is on {kind}, where SQLite cannot lock files reliably, so a crash may lose data. Use a local "
            f"folder, det up --data /var/tmp/detent-{os.getuid()}, and det-master backup for a copy on {kind}; or a "
            "database of PostgreSQL (database_url in --config)"
        )


def make_private(folder: Path) -> Path:
    """Creates the folder and its ``logs`` with mode 0700, or changes their mode. Returns ``logs``."""
    logs = folder / "logs"
    for each in (folder, logs):
        each.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(PermissionError):  # owned by another user; the master warns about it
            each.chmod(0o700)
    return logs


def open_log(path: Path) -> IO[bytes]:
    """Opens a log for appending; only its owner may read it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with contextlib.suppress(PermissionError):
        os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "ab")


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Locks the folder. Raises InUse, which names the pid of the other supervisor."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        lock = PidLock(folder / LOCK)
    except LockHeld as error:
        raise in_use(folder, error.pid) from error
    with lock:
        yield


def in_use(folder: Path, pid: int | None) -> InUse:
    return InUse(f"{folder} is in use by det up with pid {pid or 'unknown'}; stop it with det down")


def holder(folder: Path) -> int | None:
    """Returns the pid of the supervisor that holds the lock, or None."""
    return pid_lock.holder(folder / LOCK)


def refuse_other_host(folder: Path) -> None:
    """Raises InUse if the supervisor that holds the lock runs on another machine: its pid means nothing here."""
    host = pid_lock.other_host(folder / LOCK)
    if host is not None:
        raise InUse(f"{folder} is in use by det up on {host}; stop it there with det down")
