"""Unpacks the data of a job on the disk of a node, once for all its ranks, and removes it with the last of them."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import sys
import tarfile
from collections.abc import Iterator, Sequence
from typing import IO

PRIVATE = 0o700
UNPACKED, LOCK = ".detent-unpacked-", ".detent-lock-"
"""Files in the folder of a site: the paths of unpacked data, and the locks of their users."""


class DataError(Exception):
    """The data cannot be unpacked on this node."""


class NodeData:
    """The folder of a job on this node's disk, with the data below it.

    Parameters:
        folder: the folder that programs know as ``SLURM_TMPDIR``.
        is_own: the folder is made for the job, and removed with it; else it is the site's.
        archive: the packed data, None without data.
        digest: hash of the content; data of the same hash that is on the node already is not unpacked again.
        paths: what the archive has at its top, relative to the folder.
    """

    def __init__(self, folder: str, is_own: bool, archive: str | None, digest: str, paths: Sequence[str]) -> None:
        self._folder, self._is_own, self._archive, self._paths = folder, is_own, archive, paths
        stem = folder if is_own else os.path.join(folder, LOCK + digest[:16])
        self._marker = os.path.join(folder, UNPACKED + digest[:16])
        self._setup_path, self._use_path = stem + ".setup", stem + ".use"
        self._use: IO[bytes] | None = None

    def enter(self) -> None:
        """Makes the folder and unpacks the data, unless another rank of this node has. Raises DataError."""
        if self._archive is None and not self._is_own:
            return
        try:
            if self._is_own:
                _make_private(os.path.dirname(self._folder))
                _remove_abandoned(os.path.dirname(self._folder))
            else:
                _remove_abandoned_data(self._folder)
            with _lock(self._setup_path, fcntl.LOCK_EX):
                if self._is_own:
                    os.makedirs(self._folder, PRIVATE, exist_ok=True)
                # Locked before it is unpacked: another job removes data whose lock nobody holds.
                self._use = _lock(self._use_path, fcntl.LOCK_SH)
                self._unpack()
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DataError(f"the disk of this node is full: {self._folder} has no room for the data") from None
            raise DataError(f"{error.filename or self._folder}: {error.strerror or error}") from None

    def leave(self) -> None:
        """Removes the data if no other rank of this node uses it."""
        if self._use is None:
            return
        with self._use as use, _lock(self._setup_path, fcntl.LOCK_EX):
            self._use = None
            try:
                fcntl.flock(use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return
            self._remove()

    def clean(self) -> None:
        """Removes what ranks that were killed have left behind."""
        if os.path.exists(self._use_path):
            self._use = open(self._use_path, "ab")  # noqa: SIM115  # leave() closes it
            self.leave()

    def _unpack(self) -> None:
        if self._archive is None or os.path.exists(self._marker):
            return
        for path in self._paths:
            if os.path.lexists(os.path.join(self._folder, path)):
                raise DataError(f"{os.path.join(self._folder, path)} exists already, and not as data of this job")
        try:
            with tarfile.open(self._archive) as archive:
                # Ours: packed by this user a moment ago.
                if hasattr(tarfile, "fully_trusted_filter"):
                    archive.extractall(self._folder, filter="fully_trusted")
                else:
                    archive.extractall(self._folder)
            with open(self._marker, "w", encoding="utf-8") as marker:
                json.dump(list(self._paths), marker)
        except (OSError, tarfile.TarError) as error:
            _remove_paths(self._folder, self._paths)
            if isinstance(error, tarfile.TarError):
                raise DataError(f"{self._archive} cannot be unpacked: {error}") from None
            raise

    def _remove(self) -> None:
        if self._is_own:
            shutil.rmtree(self._folder, ignore_errors=True)
        elif os.path.exists(self._marker):  # else the paths are not ours
            _remove_paths(self._folder, self._paths)
            _unlink(self._marker)
        _unlink(self._use_path)
        _unlink(self._setup_path)


def _lock(path: str, kind: int) -> IO[bytes]:
    """Returns a locked file. A file that its last user has just removed locks nobody out: another is made."""
    while True:
        file = open(path, "ab")  # noqa: SIM115  # the caller closes it
        fcntl.flock(file, kind)
        if _is_still(file, path):
            return file
        file.close()


def _is_still(file: IO[bytes], path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False


def _make_private(folder: str) -> None:
    """Makes the folder of all jobs of this user. Raises DataError if another user made it, who can predict
    its path."""
    os.makedirs(folder, PRIVATE, exist_ok=True)
    status = os.lstat(folder)
    if status.st_uid != os.getuid() or os.path.islink(folder):
        raise DataError(f"{folder} belongs to another user; name another disk by node_scratch in SITE.yaml")


def _remove_abandoned(folder: str) -> None:
    """Removes the folders of jobs that were killed before they could: nobody holds their locks."""
    for name in os.listdir(folder):
        stem = os.path.join(folder, name[: -len(".use")])
        if not name.endswith(".use"):
            continue
        with _abandoned(stem) as is_abandoned:
            if is_abandoned:
                shutil.rmtree(stem, ignore_errors=True)
                _unlink(stem + ".use")
                _unlink(stem + ".setup")  # last: those who come lock it first


def _remove_abandoned_data(folder: str) -> None:
    """Removes from the site's folder the data that killed jobs left there: not every site removes that folder with the
    job."""
    for name in os.listdir(folder):
        marker = os.path.join(folder, name)
        stem = marker.replace(UNPACKED, LOCK)
        if not name.startswith(UNPACKED):
            continue
        with _abandoned(stem) as is_abandoned:
            if not is_abandoned:
                continue
            try:
                with open(marker, encoding="utf-8") as file:
                    paths = json.load(file)
            except (OSError, ValueError):
                continue
            _remove_paths(folder, paths)
            for path in (marker, stem + ".use", stem + ".setup"):
                _unlink(path)


@contextlib.contextmanager
def _abandoned(stem: str) -> Iterator[bool]:
    """Yields True if no rank holds the locks of a folder, and holds them meanwhile: a rank that comes waits until the
    folder is removed."""
    with contextlib.ExitStack() as held:
        yield all(_is_held(held, path) for path in (stem + ".setup", stem + ".use"))


def _is_held(held: contextlib.ExitStack, path: str) -> bool:
    """Returns True if a lock is held from now on, or nobody can hold it because its file is gone."""
    try:
        file = held.enter_context(open(path, "rb"))  # noqa: SIM115  # the stack closes it
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return _is_still(file, path)
    except FileNotFoundError:
        return True
    except OSError:
        return False


def _remove_paths(folder: str, paths: Sequence[str]) -> None:
    for path in paths:
        _remove_tree(os.path.join(folder, path))
        _remove_empty_folders(folder, os.path.dirname(path))


def _remove_tree(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        _unlink(path)


def _remove_empty_folders(folder: str, path: str) -> None:
    while path:
        try:
            os.rmdir(os.path.join(folder, path))
        except OSError:
            return
        path = os.path.dirname(path)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError as error:
        if error.errno != errno.ENOENT:
            print(f"det batch: {path} is left behind: {error.strerror}", file=sys.stderr)
