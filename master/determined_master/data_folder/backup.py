"""Backup of a master's data folder while it runs, and its restore elsewhere: one archive, with the hash of each file.

The archive (tar, zstd) holds a whole copy of the database, the contexts, the cluster's secrets and, if asked for, the
checkpoints of the data folder. Its manifest comes last, so that a part of an archive is never taken for a whole one.
"""

import hashlib
import io
import json
import logging
import os
import shutil
import stat
import tarfile
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import zstandard

from determined.link.master_folder import AGENT_TOKEN, SECRET
from determined_master.db.migrate import newest_revision
from determined_master.db.sqlite import file as sqlite_file

FORMAT = 1
MANIFEST = "manifest.json"
DATABASE = "master.sqlite"
SECRETS = (SECRET, AGENT_TOKEN, "operator-token", "password")
CONTEXTS, CHECKPOINTS = "blobs", "checkpoints"
RESTORING = ".restoring"
_PIECE = 1 << 20
_OF_A_MANIFEST = (ValueError, KeyError, TypeError, AttributeError)
"""Errors of one that is damaged."""
logger = logging.getLogger(__name__)


class BackupFailed(Exception):
    """A backup or a restore is not possible. The text is one line: which file, what is wrong, what to do."""


@dataclass(frozen=True)
class Summary:
    """What an archive holds. ``size`` is the number of bytes before compression."""

    revision: str
    files: int
    size: int


def back_up(data: Path, database: Path, target: Path, *, with_checkpoints: bool = False) -> Summary:
    """Writes an archive of the data folder; the master may run meanwhile.

    Args:
        data: data folder of the master.
        database: its SQLite database.
        target: file to write; it must not exist. It appears when it is whole.
        with_checkpoints: include the folder ``checkpoints`` of the data folder.

    Raises:
        BackupFailed: the target exists, the database is damaged, or the disk is full.
    """
    if target.exists():
        raise BackupFailed(f"{target} exists; name another file")
    try:
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".det-backup-") as folder:
            copy = Path(folder) / DATABASE
            sqlite_file.copy_whole(database, copy)
            revision = sqlite_file.revision_of_file(copy)
            if revision is None:
                raise BackupFailed(f"{database} has no tables; start the master once")
            partial = Path(folder) / "archive"
            with open(partial, "xb", opener=_private) as file:
                summary = _write(file, copy, data, revision, with_checkpoints=with_checkpoints)
                file.flush()
                os.fsync(file.fileno())
            partial.replace(target)
    except sqlite_file.DatabaseUnusable as error:
        raise BackupFailed(str(error)) from error
    except OSError as error:
        raise BackupFailed(f"cannot write {target}: {error.strerror or error}") from error
    return summary


def restore(archive: Path, data: Path) -> Summary:
    """Makes a data folder of an archive. Its files appear when every one has been checked.

    Args:
        archive: file that :func:`back_up` has written.
        data: the new data folder; it must not exist, or be empty. It may be a mount point.

    Raises:
        BackupFailed: the archive is damaged, cut off or of a newer version, or the folder is not empty.
    """
    # An empty folder may be a mount point, which nothing can replace.
    partial = data / RESTORING if data.is_dir() else data.with_name(f".{data.name}{RESTORING}")
    if data.exists() and (not data.is_dir() or set(data.iterdir()) - {partial}):
        raise BackupFailed(f"{data} is not empty; name a new folder")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(parents=True, mode=0o700)
        with archive.open("rb") as file:
            summary = _checked(_unpacked(file, partial), archive)
        if data.is_dir():
            for each in partial.iterdir():
                each.replace(data / each.name)
        else:
            partial.replace(data)
    except (tarfile.TarError, zstandard.ZstdError, EOFError, *_OF_A_MANIFEST) as error:
        raise BackupFailed(f"{archive} is damaged or is no backup: {error}") from error
    except OSError as error:
        raise BackupFailed(f"cannot restore {archive} to {data}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return summary


def _write(file: IO[bytes], database: Path, data: Path, revision: str, *, with_checkpoints: bool) -> Summary:
    hashes: dict[str, str] = {}
    total = 0
    with zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(file, closefd=False) as packed:
        with tarfile.open(fileobj=packed, mode="w|") as archive:
            for name, path in ((DATABASE, database), *_files(data, with_checkpoints=with_checkpoints)):
                found = _add(archive, name, path)
                if found is not None:
                    hashes[name], size = found
                    total += size
            text = json.dumps({"format": FORMAT, "revision": revision, "size": total, "files": hashes}).encode()
            archive.addfile(_member(MANIFEST, len(text)), io.BytesIO(text))
    return Summary(revision, len(hashes), total)


def _files(data: Path, *, with_checkpoints: bool) -> Iterator[tuple[str, Path]]:
    for name in SECRETS:
        yield name, data / name
    folders = (CONTEXTS, CHECKPOINTS) if with_checkpoints else (CONTEXTS,)
    for folder in folders:
        for base, _, names in os.walk(data / folder):
            for name in sorted(names):
                if not name.startswith(".incoming-"):
                    path = Path(base) / name
                    yield str(PurePosixPath(path.relative_to(data))), path


def _add(archive: tarfile.TarFile, name: str, path: Path) -> tuple[str, int] | None:
    """Adds a regular file and returns its hash and size; None for one that is gone meanwhile, or no regular file.

    A link to a file of its folder is kept as that file, any other left out: who writes checkpoints could name others.
    Raises BackupFailed if a file cannot be read.
    """
    real = path.resolve() if path.is_symlink() else path
    if name not in SECRETS and not real.is_relative_to(path.parent.resolve()):
        logger.warning("left out of the backup: %s is a link out of its folder", path)
        return None
    try:
        with open(real, "rb", opener=_no_link) as file:
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                return None
            hashing = _Hashing(file)
            archive.addfile(_member(name, state.st_size), hashing)  # type: ignore[arg-type]  # only read is called
            return hashing.sha.hexdigest(), state.st_size
    except (FileNotFoundError, IsADirectoryError):
        return None
    except PermissionError as error:
        raise BackupFailed(f"cannot read {path}: {error.strerror}") from error


class _Hashing:
    """Reads a file and computes its hash."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha = hashlib.sha256()

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self.sha.update(data)
        return data


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, int(time.time())
    return member


def _unpacked(file: IO[bytes], folder: Path) -> tuple[dict[str, str], dict[str, Any] | None]:
    """Unpacks the regular files and returns their hashes, and the manifest if there is one."""
    hashes: dict[str, str] = {}
    manifest: dict[str, Any] | None = None
    with zstandard.ZstdDecompressor().stream_reader(file) as plain, tarfile.open(fileobj=plain, mode="r|") as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            content = archive.extractfile(member) if member.isreg() else None
            if content is None or path.is_absolute() or ".." in path.parts:
                raise tarfile.TarError(f"unexpected member {member.name!r}")
            if member.name == MANIFEST:
                manifest = json.loads(content.read())
                continue
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            sha = hashlib.sha256()
            with open(target, "xb", opener=_private) as out:
                while piece := content.read(_PIECE):
                    sha.update(piece)
                    out.write(piece)
            hashes[member.name] = sha.hexdigest()
    return hashes, manifest


def _checked(found: tuple[dict[str, str], dict[str, Any] | None], archive: Path) -> Summary:
    hashes, manifest = found
    if manifest is None:
        raise BackupFailed(f"{archive} is cut off: it has no manifest")
    if manifest.get("format") != FORMAT:
        raise BackupFailed(f"{archive} has format {manifest.get('format')}, and this version reads format {FORMAT}")
    expected: dict[str, str] = manifest["files"]
    wrong = sorted(name for name in expected.keys() | hashes.keys() if expected.get(name) != hashes.get(name))
    if wrong:
        raise BackupFailed(f"{archive} is damaged: {wrong[0]} has another content than when it was written")
    revision = str(manifest["revision"])
    if revision > newest_revision():
        raise BackupFailed(
            f"{archive} is of revision {revision}, and this version of Detent supports revisions up to "
            f"{newest_revision()}: install the version that wrote it, or a newer one"
        )
    return Summary(revision, len(hashes), int(manifest["size"]))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
