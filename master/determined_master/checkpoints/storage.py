"""Checkpoint storage as the master sees it: where it may read and delete, in folders and in buckets."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from determined.storage.bucket_access import Bucket, bucket_at, bucket_of
from determined_master.checkpoints import buckets, folders
from determined_master.checkpoints.archive import FolderEntry
from determined_master.errors import OutOfReach
from determined_master.settings.settings import Settings

Root = Path | Bucket


def allowed_roots(settings: Settings) -> tuple[Root, ...]:
    """Returns the places below which this master reads and deletes checkpoints. Only the admin sets them."""
    default = settings.storage_default
    own: list[Root] = [settings.data / "checkpoints"]
    bucket = bucket_of(default)
    if bucket is not None:
        own.append(bucket)
    elif default.get("type") in folders.TYPES:
        own.append(folders.storage_folder(default))
    return (*own, *settings.checkpoint_roots, *map(bucket_at, settings.checkpoint_buckets))


def entries(storage: Mapping[str, Any], uuid: str, roots: Sequence[Root]) -> Iterator[FolderEntry]:
    """Yields the files and folders of a checkpoint. Blocking.

    Raises OutOfReach where the master may not read, NotFound where the files are gone.
    """
    if bucket_of(storage) is None:
        return folders.entries(storage, uuid, folder_roots(roots))
    return buckets.entries(storage, uuid, _bucket_roots(roots))


def refuse_foreign(storage: Mapping[str, Any], uuid: str, roots: Sequence[Root]) -> bool:
    """Returns True if the master can delete this checkpoint, False if it does not reach its storage. Blocking.

    Raises OutOfReach for a folder in its reach that may be no checkpoint.
    """
    try:
        refuse_root_out_of_reach(storage, roots)
    except OutOfReach:
        return False
    if bucket_of(storage) is None:
        folders.refuse_out_of_reach(storage, uuid, folder_roots(roots))
    return True


def refuse_root_out_of_reach(storage: Mapping[str, Any], roots: Sequence[Root]) -> None:
    """Raises OutOfReach where the master may delete no checkpoint of this storage. Blocking."""
    if bucket_of(storage) is None:
        folders.refuse_root_out_of_reach(storage, folder_roots(roots))
    else:
        buckets.opened(storage, _bucket_roots(roots))


def remove(storage: Mapping[str, Any], uuid: str, roots: Sequence[Root]) -> str | None:
    """Removes a checkpoint's files. Returns None once they are gone, otherwise why the master leaves them. Blocking.

    Raises OSError or StorageError if they cannot be removed; a later call finds what a failed one left.
    """
    if bucket_of(storage) is None:
        return folders.remove(storage, uuid, folder_roots(roots))
    return buckets.remove(storage, uuid, _bucket_roots(roots))


def folder_roots(roots: Sequence[Root]) -> list[Path]:
    return [root for root in roots if isinstance(root, Path)]


def _bucket_roots(roots: Sequence[Root]) -> list[Bucket]:
    return [root for root in roots if isinstance(root, Bucket)]
