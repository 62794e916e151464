"""Checkpoints in buckets as the master sees them: only those in places that the admin names."""

import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from determined.errors import NotFound, StorageError
from determined.storage.bucket import BucketStorage
from determined.storage.bucket_access import Bucket
from determined_master.checkpoints.archive import FolderEntry
from determined_master.errors import OutOfReach

_FILE, _FOLDER = stat.S_IFREG | 0o644, stat.S_IFDIR | 0o755


def opened(storage: Mapping[str, Any], roots: Sequence[Bucket]) -> BucketStorage:
    """Returns the bucket of a ``checkpoint_storage`` section. Nothing is asked of the service yet.

    Raises OutOfReach if the admin has not named it: with the master's own keys a user could reach any bucket.
    """
    storage_opened = BucketStorage(storage, waits=())
    if not any(root.holds(storage_opened.bucket) for root in roots):
        raise OutOfReach(
            f"{storage_opened.bucket} is not a place in which this master reads and deletes checkpoints; "
            "an admin can allow it by the master's setting checkpoint_buckets"
        )
    return storage_opened


def entries(storage: Mapping[str, Any], uuid: str, roots: Sequence[Bucket]) -> Iterator[FolderEntry]:
    """Yields the files and folders of a checkpoint; the content of each is fetched while it is read. Blocking.

    Raises OutOfReach where the master cannot read, NotFound where the files are gone.
    """
    bucket = opened(storage, roots)
    try:
        resources = bucket.resources(uuid)
    except StorageError as error:
        if error.__cause__ is None:
            raise NotFound(f"the files of checkpoint {uuid} are missing") from None
        raise OutOfReach(error.message) from error
    now = time.time()
    for name, size in sorted(resources.items()):
        if name.endswith("/"):
            yield FolderEntry(name.rstrip("/"), 0, _FOLDER, now, None)
            continue
        with bucket.open(uuid, name) as file:
            yield FolderEntry(name, size, _FILE, now, file)


def remove(storage: Mapping[str, Any], uuid: str, roots: Sequence[Bucket]) -> str | None:
    """Removes a checkpoint's objects. Returns None once they are gone, otherwise why the master leaves them. Blocking.

    Raises StorageError if they cannot be removed.
    """
    try:
        opened(storage, roots).delete(uuid)
    except OutOfReach as error:
        return error.message
    return None
