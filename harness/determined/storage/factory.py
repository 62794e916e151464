"""Chooses the checkpoint storage for a configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from determined.errors import StorageError
from determined.storage.base import Storage
from determined.storage.bucket import BucketStorage
from determined.storage.bucket_access import LIBRARIES
from determined.storage.directory import DirectoryStorage
from determined.storage.shared_fs import SharedFSStorage
from determined_launch import environment


def from_config(config: Mapping[str, Any] | str, environ: Mapping[str, str]) -> Storage:
    """Returns the storage for a ``checkpoint_storage`` section.

    Args:
        config: the section, or the path of a folder.
        environ: environment variables of the task.

    Raises:
        StorageError: the section names no storage that is supported.
    """
    if isinstance(config, str):
        return DirectoryStorage(Path(config))
    kind = config.get("type")
    if kind == "shared_fs":
        root = environ.get(environment.SHARED_FS) or environment.DEFAULT_SHARED_FS
        return SharedFSStorage.below(Path(root), config.get("storage_path"), host_path=config.get("host_path"))
    if kind == "directory":
        return DirectoryStorage(Path(str(config["container_path"])))
    if kind in LIBRARIES:
        return BucketStorage(config)
    raise StorageError(f"checkpoint_storage of type {kind!r} is not supported")
