"""Stores checkpoints as folders below a root: written under another name, synced, then renamed."""

import contextlib
import errno
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from determined.errors import StorageError
from determined.storage import hashes
from determined.storage.base import HASHES_FILE, Finish, Selector, checkpoint_folder
from determined.storage.folder_listing import remove_special, tree
from determined_launch.out_of_space import is_out_of_space

logger = logging.getLogger(__name__)

MIN_FREE_BYTES = 1 << 20
"""Minimum free space in bytes for starting a checkpoint."""
RETRY_SECONDS = 2.0
PARALLEL_FILES = 4
_FULL = {
    errno.ENOSPC: "is full",
    errno.EDQUOT: "has reached its quota",
    errno.ESTALE: "is no longer available (stale file handle)",
}


class DirectoryStorage:
    """Stores checkpoints in ``root/<uuid>/``."""

    upload_part = None

    def __init__(self, root: Path, *, shown_as: str | None = None) -> None:
        self.root = root
        self._shown = shown_as or str(root)

    @contextlib.contextmanager
    def store_path(self, uuid: str, finish: Finish) -> Iterator[Path]:
        """Yields a folder that is renamed to ``uuid`` if the block succeeds and removed if it fails."""
        folder = checkpoint_folder(self.root, uuid)
        self._wait_for_space()
        partial = folder.with_name(f"{uuid}.partial-{secrets.token_hex(4)}")
        try:
            with self._naming("write"):
                partial.mkdir(parents=True)
                yield partial
                remove_special(partial)
                finish(partial)
                _hash_and_sync(partial)
                os.rename(partial, folder)
                _sync_folder(self.root)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise

    def upload(self, source: Path, uuid: str, paths: list[str], finish: Finish) -> None:
        """Copies into the folder that becomes the checkpoint. On a full disk it waits and copies again."""
        while True:
            try:
                with self.store_path(uuid, finish) as target, self._naming("write"):
                    for name in paths:
                        copy(source / name, target / name)
                return
            except StorageError as error:
                if error.__cause__ is None or not is_out_of_space(error.__cause__):
                    raise
                logger.warning("the checkpoint is stored when there is space again: %s", error)
            time.sleep(RETRY_SECONDS)

    @contextlib.contextmanager
    def restore_path(self, uuid: str, selector: Selector | None = None) -> Iterator[Path]:
        """Yields the checkpoint's own folder, or one with links to the selected files: nothing is copied."""
        folder = self._existing(uuid)
        names = [name for name in self.resources(uuid) if selector is None or selector(name)]
        self._verify(folder, names, uuid)
        if selector is None:
            yield folder
            return
        with _view(folder, names) as seen:
            yield seen

    def download(self, uuid: str, target: Path, selector: Selector | None = None) -> None:
        """Copies the selected files."""
        folder = self._existing(uuid)
        names = sorted(name for name in self.resources(uuid) if selector is None or selector(name))
        with self._naming("read"):
            for name in names:
                copy(folder / name, target / name)
        hashes.verify(target, names, self._hashes(folder, uuid), uuid)

    def resources(self, uuid: str) -> dict[str, int]:
        """Lists the folder without our own list of hashes."""
        return tree(self._existing(uuid))

    def read(self, uuid: str, path: str) -> bytes:
        """Returns the content of one file of the checkpoint."""
        folder = self._existing(uuid)
        with self._naming("read"):
            return (folder / path).read_bytes()

    def delete(self, uuid: str) -> None:
        """Renames the folder before it is removed, so that a partial checkpoint is never visible under its uuid."""
        folder = checkpoint_folder(self.root, uuid)
        renamed = folder.with_name(f"{uuid}.deleted-{secrets.token_hex(4)}")
        with self._naming("delete"):
            try:
                os.rename(folder, renamed)
            except FileNotFoundError:
                return
            shutil.rmtree(renamed)

    def probe(self) -> None:
        """Writes, syncs and removes a small file."""
        path = self.root / f".probe-{secrets.token_hex(4)}"
        with self._naming("write"):
            self.root.mkdir(parents=True, exist_ok=True)
            try:
                with path.open("wb") as file:
                    file.write(b"probe")
                    file.flush()
                    os.fsync(file.fileno())
            finally:
                path.unlink(missing_ok=True)

    def free_bytes(self) -> int | None:
        """Returns the free space of the storage's disk; None if it is unknown."""
        return _free_bytes(self.root)

    def _verify(self, folder: Path, names: Iterable[str], uuid: str) -> None:
        with self._naming("read"):
            hashes.verify(folder, names, self._hashes(folder, uuid), uuid)

    def _hashes(self, folder: Path, uuid: str) -> dict[str, str]:
        with self._naming("read"):
            kept = folder / HASHES_FILE
            return hashes.read(kept.read_bytes() if kept.exists() else None, uuid)

    def _wait_for_space(self) -> None:
        """Waits until the disk is not full. The next files may still be too large for it."""
        is_logged = False
        while (free := self.free_bytes()) is not None and free < MIN_FREE_BYTES:
            if not is_logged:
                logger.warning("checkpoint storage %s is full; the checkpoint waits until there is space", self._shown)
            is_logged = True
            time.sleep(RETRY_SECONDS)

    def _existing(self, uuid: str) -> Path:
        folder = checkpoint_folder(self.root, uuid)
        if not folder.is_dir():
            raise StorageError(f"checkpoint {uuid} is not in {self._shown}")
        return folder

    @contextlib.contextmanager
    def _naming(self, verb: str) -> Iterator[None]:
        """Adds the storage's name to errors of the file system below our root; other errors pass."""
        try:
            yield
        except OSError as error:
            where = [str(name) for name in (error.filename, error.filename2) if name]
            ours = any(name.startswith(str(self.root)) for name in where)
            if error.errno in _FULL and (ours or not where):
                raise StorageError(
                    f"checkpoint storage {self._shown} {_FULL[error.errno]}; the last good checkpoint is kept"
                ) from error
            if not ours:
                raise
            raise StorageError(f"cannot {verb} in checkpoint storage {self._shown}: {error.strerror}") from error


def _free_bytes(folder: Path) -> int | None:
    """Returns the free space of the disk of ``folder``; None if it is unknown."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize if found.f_blocks else None


def _hash_and_sync(folder: Path) -> None:
    """Writes the file of hashes and syncs everything. Files are hashed while the disk writes them."""
    names = [name for name in tree(folder) if not name.endswith("/")]
    with ThreadPoolExecutor(2 * PARALLEL_FILES) as pool:
        synced = [pool.submit(_sync_file, folder / name) for name in names]
        digests = [pool.submit(hashes.digest, folder / name) for name in names]
        for each in synced:
            each.result()
        found = {name: digest.result() for name, digest in zip(names, digests, strict=True)}
    (folder / HASHES_FILE).write_bytes(hashes.written(found))
    _sync_file(folder / HASHES_FILE)
    for base, _, _ in os.walk(folder):
        _sync_folder(Path(base))


@contextlib.contextmanager
def _view(folder: Path, names: Iterable[str]) -> Iterator[Path]:
    """Yields a folder of links to the named files, so that only these are visible."""
    made = Path(tempfile.mkdtemp(prefix="determined-restore-"))
    try:
        for name in sorted(names):
            if name.endswith("/"):
                (made / name).mkdir(parents=True, exist_ok=True)
            else:
                (made / name).parent.mkdir(parents=True, exist_ok=True)
                os.symlink(os.path.abspath(folder / name), made / name)
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def copy(source: Path, target: Path) -> None:
    """Copies one file or creates one folder, with its parents."""
    if source.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _sync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
