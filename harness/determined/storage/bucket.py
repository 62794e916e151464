"""Stores checkpoints in a bucket: files in parallel, then the two files that make the checkpoint visible."""

import contextlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from determined.errors import StorageError
from determined.storage import hashes
from determined.storage.base import HASHES_FILE, METADATA_FILE, Finish, Selector, checked_id
from determined.storage.bucket_access import UPLOADS, Bucket, bucket_of, open_filesystem
from determined.storage.folder_listing import tree
from determined.storage.service_clock import clock_difference

logger = logging.getLogger(__name__)
R = TypeVar("R")

PARALLEL_FILES = 4
RETRY_SECONDS = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 60.0, 60.0)
"""Waits before a file is tried again: a service may be away for some four minutes."""
_LAST = (METADATA_FILE, HASHES_FILE)
"""A checkpoint is visible once one of these exists; they are uploaded after all others, in this order."""


class BucketStorage:
    """Stores checkpoints below ``<prefix>/<uuid>/`` of a bucket.

    Parameters:
        config: a ``checkpoint_storage`` section of type s3, gcs or azure.
        waits: seconds before each further try of a request that got no answer; ``RETRY_SECONDS`` by default.
    """

    def __init__(self, config: Mapping[str, Any], waits: Sequence[float] | None = None) -> None:
        bucket = bucket_of(config)
        if bucket is None:
            raise StorageError(f"checkpoint_storage of type {config.get('type')!r} names no bucket")
        self.bucket: Bucket = bucket
        self._config = config
        self._waits = RETRY_SECONDS if waits is None else waits
        self._opened: Any = None

    @contextlib.contextmanager
    def store_path(self, uuid: str, finish: Finish) -> Iterator[Path]:
        """Yields a folder of this machine, which is uploaded after the block and removed then."""
        checked_id(uuid)
        folder = Path(tempfile.mkdtemp(prefix="determined-checkpoint-"))
        try:
            yield folder
            finish(folder)
            self._upload(folder, uuid)
        except BaseException:
            self._remove_quietly(uuid)
            raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def upload(self, source: Path, uuid: str, paths: list[str], finish: Finish) -> None:
        """Uploads from ``source`` itself: nothing is copied on this machine."""
        with self.store_path(uuid, finish) as target:
            for name in paths:
                if name.endswith("/"):
                    (target / name).mkdir(parents=True, exist_ok=True)
                elif name not in _LAST:  # written by ``finish``, and not through a link into the user's folder
                    (target / name).parent.mkdir(parents=True, exist_ok=True)
                    os.symlink(os.path.abspath(source / name), target / name)

    def upload_part(self, uuid: str, source: Path, names: Iterable[str]) -> dict[str, str]:
        """Uploads files of a checkpoint that is not complete yet. Returns the hash of each."""
        files = [name for name in names if not name.endswith("/")]
        with ThreadPoolExecutor(PARALLEL_FILES, thread_name_prefix="upload") as pool:
            return dict(zip(files, pool.map(lambda name: self._put(uuid, source, name), files), strict=True))

    @contextlib.contextmanager
    def restore_path(self, uuid: str, selector: Selector | None = None) -> Iterator[Path]:
        """Yields a folder of this machine with the downloaded files."""
        folder = Path(tempfile.mkdtemp(prefix="determined-restore-"))
        try:
            self.download(uuid, folder, selector)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def download(self, uuid: str, target: Path, selector: Selector | None = None) -> None:
        """Downloads the selected files and compares each with its hash."""
        sizes = self._visible(uuid)
        content = self.read(uuid, HASHES_FILE) if HASHES_FILE in sizes else None
        expected = hashes.read(content, uuid)
        names = [name for name in _with_folders(sizes) if selector is None or selector(name)]
        for name in names:
            place = target / name
            (place if name.endswith("/") else place.parent).mkdir(parents=True, exist_ok=True)
        files = [name for name in names if not name.endswith("/")]

        def get(name: str) -> None:
            self._tried(
                f"download {name} from", lambda: self.filesystem.get_file(self.key(uuid, name), str(target / name))
            )
            hashes.verify(target, [name], expected, uuid)

        with ThreadPoolExecutor(PARALLEL_FILES, thread_name_prefix="download") as pool:
            list(pool.map(get, files))

    def resources(self, uuid: str) -> dict[str, int]:
        """Lists the objects, and their folders; a bucket has no empty ones."""
        return _with_folders(self._visible(uuid))

    def read(self, uuid: str, path: str) -> bytes:
        return bytes(self._tried(f"read {path} in", lambda: self.filesystem.cat_file(self.key(uuid, path))))

    def open(self, uuid: str, path: str) -> Any:  # noqa: ANN401  # fsspec's file
        """Returns a file of the checkpoint, opened for reading, whose content is fetched as it is read."""
        return self._tried(f"read {path} in", lambda: self.filesystem.open(self.key(uuid, path), "rb"))

    def delete(self, uuid: str) -> None:
        """Removes what makes the checkpoint visible first, so that half of it is never seen."""
        for is_last in (True, False):
            self._tried("delete in", partial(self._remove, uuid, is_last=is_last))

    def probe(self) -> None:
        key = f"{self.bucket.root}/.probe-{time.time_ns():x}"
        self._tried("write to", lambda: self.filesystem.pipe_file(key, b"probe"), waits=())
        self._tried("delete in", lambda: self.filesystem.rm([key]), waits=())

    def key(self, uuid: str, name: str) -> str:
        """Returns the place of a file, as fsspec names it."""
        return f"{self.bucket.root}/{checked_id(uuid)}/{name}"

    @property
    def filesystem(self) -> Any:  # noqa: ANN401  # fsspec is installed only where it is needed
        if self._opened is None:
            self._opened = open_filesystem(self._config)
        return self._opened

    def _upload(self, folder: Path, uuid: str) -> None:
        names = [name for name in sorted(tree(folder)) if not name.endswith("/")]
        kept = folder / HASHES_FILE  # of files that workers on other machines have uploaded
        found = hashes.read(kept.read_bytes() if kept.exists() else None, uuid)
        found |= self.upload_part(uuid, folder, [name for name in names if name not in _LAST])
        found |= self.upload_part(uuid, folder, [name for name in names if name == METADATA_FILE])
        kept.write_bytes(hashes.written(found))
        self.upload_part(uuid, folder, [HASHES_FILE])

    def _put(self, uuid: str, source: Path, name: str) -> str:
        path = source / name
        digest = hashes.digest(path)
        options = UPLOADS.get(self.bucket.scheme, {})
        self._tried(f"upload {name} to", lambda: self.filesystem.put_file(str(path), self.key(uuid, name), **options))
        return digest

    def _sizes(self, uuid: str) -> dict[str, int]:
        root = self.key(uuid, "")

        def find() -> dict[str, int]:
            found = self.filesystem.find(root.rstrip("/"), detail=True)
            return {key[len(root) :]: int(facts["size"]) for key, facts in found.items() if key.startswith(root)}

        try:
            return {name: size for name, size in self._tried("list", find).items() if name}
        except StorageError as error:
            if isinstance(error.__cause__, FileNotFoundError):
                return {}
            raise

    def _visible(self, uuid: str) -> dict[str, int]:
        """Returns the sizes of all objects of a complete checkpoint.

        Raises StorageError for any other, and for a key that a download would write outside of its folder.
        """
        sizes = self._sizes(uuid)
        if not any(name in sizes for name in _LAST):
            raise StorageError(f"checkpoint {uuid} is not in {self.bucket}")
        for name in sizes:
            if name.startswith("/") or ".." in name.split("/"):
                raise StorageError(
                    f"checkpoint {uuid} in {self.bucket} has a file that leaves its folder: {name[:80]!r}"
                )
        return sizes

    def _remove(self, uuid: str, *, is_last: bool) -> None:
        """Removes objects; one that is gone already is no error. A library that repeats a request after a lost answer
        finds that its first one was obeyed, and reports that the object does not exist."""
        keys = self._keys(uuid, is_last=is_last)
        while keys:
            try:
                self.filesystem.rm(keys)
                return
            except FileNotFoundError:
                left = self._keys(uuid, is_last=is_last)
                if len(left) == len(keys):
                    raise
                keys = left

    def _keys(self, uuid: str, *, is_last: bool) -> list[str]:
        return [self.key(uuid, name) for name in self._sizes(uuid) if (name in _LAST) is is_last]

    def _remove_quietly(self, uuid: str) -> None:
        try:
            BucketStorage(self._config, waits=()).delete(uuid)  # a service that is away was waited for already
        except Exception as error:  # the first error is the one to show
            logger.warning("cannot remove the unfinished checkpoint %s: %s", uuid, error)

    def _tried(self, doing: str, work: Callable[[], R], *, waits: Sequence[float] | None = None) -> R:
        """Returns what ``work`` returns; again after a wait where the service could not be reached."""
        for wait in (*(self._waits if waits is None else waits), None):
            try:
                return work()
            except StorageError:
                raise
            except Exception as error:  # each library has its own
                why = _reason(error)
                if wait is None or isinstance(error, (FileNotFoundError, PermissionError, NotImplementedError)):
                    raise StorageError(
                        f"cannot {doing} checkpoint storage {self.bucket}: {why}; the last good checkpoint is kept"
                    ) from error
                logger.warning("cannot %s checkpoint storage %s: %s; again in %g s", doing, self.bucket, why, wait)
                time.sleep(wait)
        raise AssertionError


def _with_folders(sizes: Mapping[str, int]) -> dict[str, int]:
    """Returns the files without the list of hashes, and their folders, which end with ``/`` and have size 0."""
    files = {name: size for name, size in sizes.items() if name != HASHES_FILE}
    return {f"{parent.as_posix()}/": 0 for name in files for parent in list(Path(name).parents)[:-1]} | files


def _reason(error: Exception) -> str:
    """Returns the error's first line; never a key, which no library writes there."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    clocks = clock_difference(error)
    if clocks:
        return f"{clocks} ({text})"
    if isinstance(error, FileNotFoundError):
        return f"it does not exist ({text})"
    if isinstance(error, PermissionError):
        return f"it refuses these keys ({text})"
    return text
