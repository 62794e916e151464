"""Restricts the data folder to its owner, whatever an earlier version or umask left."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from determined_launch.atomic_file import write_atomic
from determined_master.db.sqlite.file import CLUSTER_ID, backup_folder, file_of

logger = logging.getLogger(__name__)
PRIVATE_UMASK = 0o077
_FOLDERS = ("blobs", "logs", "agent")


class DatabaseGone(Exception):
    """The data folder belongs to a cluster whose database is not there. The text is one line."""


def check_database(data: Path, database_url: str) -> None:
    """Raises DatabaseGone if the folder knows its cluster and the SQLite file does not exist: it would be made anew,
    as an empty cluster."""
    file = file_of(database_url)
    known = _known_cluster(data)
    if known and file is not None and not file.exists():
        raise DatabaseGone(f"{file} is gone, and {data} belongs to cluster {known}; {_advice(data)}")


def check_cluster(data: Path, cluster_id: str) -> None:
    """Raises DatabaseGone if the folder belongs to another cluster than its database."""
    known = _known_cluster(data)
    if known and known != cluster_id:
        raise DatabaseGone(f"the database is not that of cluster {known}, to which {data} belongs; {_advice(data)}")


def note_cluster(data: Path, cluster_id: str) -> None:
    """Notes the cluster of the folder's database, once that is committed."""
    if not _known_cluster(data):
        write_atomic(data / CLUSTER_ID, cluster_id + "\n")


def _known_cluster(data: Path) -> str:
    try:
        return (data / CLUSTER_ID).read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return ""


def _advice(data: Path) -> str:
    return f"restore it (`det-master restore`), or remove {data / CLUSTER_ID} to start another cluster"


def make_private(data: Path, database_url: str) -> None:
    """Makes the folder, sets it to mode 0700 and the files in it to 0600, the database and the logs too.

    What lies deeper (checkpoints, run folders) is out of reach by the folder's own mode and keeps its modes.
    """
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    for path in _found(data, file_of(database_url)):
        _close(path)


def _found(data: Path, database: Path | None) -> Iterator[Path]:
    yield data
    yield from data.iterdir()
    for folder in (data / name for name in _FOLDERS):
        if folder.is_dir():
            yield from folder.iterdir()
    if database is not None:
        yield from database.parent.glob(f"{database.name}*")
        if backup_folder(database).is_dir():
            yield backup_folder(database)
            yield from backup_folder(database).iterdir()


def _close(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode) or not mode & PRIVATE_UMASK:
            return
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            os.chmod(path, stat.S_IMODE(mode) & ~PRIVATE_UMASK)
    except FileNotFoundError:
        return
    except PermissionError:
        logger.warning("%s can be read by other users of this machine, because it belongs to another user", path)
