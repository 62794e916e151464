"""SQLite file of the master: inspected at start, backed up before an upgrade, checked before its commit.

Everything about an upgrade that other databases do differently is here.
"""

import os
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy.engine import Connection, make_url

BACKUPS_KEPT = 3
CLUSTER_ID = "cluster-id"
"""File of the data folder that names the cluster of its database."""
_HEADER = b"SQLite format 3\0"
_BACKUP = re.compile(r"(?P<revision>\d+)-\d{8}T\d{6}Z")
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
PRIMARY_CODE = 0xFF
"""The low byte of an extended result code of SQLite."""


class DatabaseUnusable(Exception):
    """The database cannot be used as it is. The text is one line: which file, what is wrong, what to do."""


def file_of(url: str) -> Path | None:
    """Returns the path of an SQLite database, or None for other databases."""
    parsed = make_url(url)
    return Path(parsed.database) if parsed.get_backend_name() == "sqlite" and parsed.database else None


def revision_of_file(path: Path) -> str | None:
    """Returns the revision, or None for a database that does not exist yet. Raises DatabaseUnusable."""
    try:
        if not path.exists() or path.stat().st_size == 0:
            return None
        with path.open("rb") as file:
            if file.read(len(_HEADER)) != _HEADER:
                raise DatabaseUnusable(f"{path} is not a database; {_advice(path)}")
    except OSError as error:
        raise DatabaseUnusable(f"cannot read {path}: {error.strerror}") from error
    with _named_errors(path), _opened(path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        found = (
            connection.execute("SELECT version_num FROM alembic_version").fetchone() if _VERSIONS in tables else None
        )
    if found is None and tables - {_VERSIONS}:
        raise DatabaseUnusable(
            f"{path} has tables but no revision: it comes from another program, or its creation was interrupted; "
            f"{_advice(path)}"
        )
    return None if found is None else str(found[0])


def back_up(path: Path, revision: str) -> Path:
    """Copies the database into ``backups`` beside it and returns the copy, which is whole and synced.

    Keeps the newest copy of each of the last revisions. Raises DatabaseUnusable where the database is damaged or the
    disk has no room; nothing has been changed then.
    """
    folder = backup_folder(path)
    partial = folder / f".{path.stem}.partial"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        partial.unlink(missing_ok=True)
        _check_room(path, folder)
        copy_whole(path, partial)
        _sync(partial)
        target = folder / f"{path.stem}-{revision}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}{path.suffix}"
        partial.replace(target)
        _sync(folder)
        _prune(path)
    except OSError as error:
        raise DatabaseUnusable(f"{path} cannot be backed up before its upgrade: {error.strerror} ({folder})") from error
    finally:
        partial.unlink(missing_ok=True)
    return target


def copy_whole(path: Path, target: Path) -> None:
    """Copies the database to a new private file, while a master may write to it. Raises DatabaseUnusable."""
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    with _named_errors(path):
        _copy(path, target)


def backups(path: Path) -> list[tuple[str, Path]]:
    """Returns revision and path of each backup, the newest first."""
    prefix = f"{path.stem}-"
    found = []
    for each in backup_folder(path).glob(f"{prefix}*{path.suffix}"):
        parts = _BACKUP.fullmatch(each.stem.removeprefix(prefix))
        if parts is not None:
            found.append((each.stem.rpartition("-")[2], parts["revision"], each))
    return [(revision, each) for _time, revision, each in sorted(found, reverse=True)]


def backup_folder(path: Path) -> Path:
    return path.parent / "backups"


def foreign_key_violations(connection: Connection) -> Counter[tuple[str, str]]:
    """Counts the rows whose parent is missing, by table and parent table."""
    rows = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    return Counter((row[0], row[2]) for row in rows)


def restore_advice(path: Path, newest: str) -> str:
    """Says which backup a program that knows revisions up to ``newest`` can open."""
    usable = [each for revision, each in backups(path) if revision <= newest]
    if not usable:
        return f"there is no backup of an earlier revision in {backup_folder(path)}"
    return f"to restore the newest backup, remove {path.name}-wal and {path.name}-shm and copy {usable[0]} to {path}"


def explained(path: Path, error: BaseException) -> str:
    """Says in one line what an error of the database means, and what to do."""
    if getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE in DAMAGE:
        return f"{path} is damaged ({error}); {_advice(path)}"
    return f"cannot use {path}: {error}"


def explained_at(url: str, error: BaseException) -> str:
    """Says the same of the database at ``url``, of whatever kind it is."""
    file = file_of(url)
    return f"cannot use the database: {error}" if file is None else explained(file, error)


_VERSIONS = "alembic_version"


def _advice(path: Path) -> str:
    if not backups(path):
        return (
            f"there is no backup in {backup_folder(path)}; move the file and {CLUSTER_ID} of the data folder away to "
            "start with an empty database"
        )
    return restore_advice(path, backups(path)[0][0])


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise DatabaseUnusable(explained(path, error)) from error


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
        yield connection


def _check_room(path: Path, folder: Path) -> None:
    log = path.with_name(f"{path.name}-wal")
    needed = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise DatabaseUnusable(
            f"{path} cannot be backed up before its upgrade: {needed >> 20} MiB are needed in {folder} and "
            f"{free >> 20} MiB are free; nothing was changed"
        )


def _copy(path: Path, target: Path) -> None:
    with _opened(path) as source, _opened(target) as copy:
        damage = source.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise DatabaseUnusable(f"{path} is damaged ({' '.join(damage.split())}); {_advice(path)}")
        copy.execute("PRAGMA synchronous=OFF")  # the caller syncs the file as a whole
        source.backup(copy)


def _prune(path: Path) -> None:
    """Removes all but the newest backup of each of the newest revisions."""
    kept: set[str] = set()
    for revision, each in backups(path):
        if revision in kept or len(kept) == BACKUPS_KEPT:
            each.unlink(missing_ok=True)
        else:
            kept.add(revision)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
