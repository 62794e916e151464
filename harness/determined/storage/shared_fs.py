"""Checkpoints on a file system that all agents share."""

import os
from pathlib import Path

from determined.errors import StorageError
from determined.storage.directory import DirectoryStorage


class SharedFSStorage(DirectoryStorage):
    """Stores checkpoints in a folder below the place where the task sees ``host_path``."""

    @classmethod
    def below(cls, mount: Path, storage_path: str | None, *, host_path: str | None = None) -> "SharedFSStorage":
        """Returns the storage.

        ``storage_path`` is relative to the mount, or absolute inside ``host_path``; it must not leave it.
        """
        relative = storage_path or ""
        if relative.startswith("/"):
            relative = os.path.relpath(relative, host_path or str(mount))
        root = Path(os.path.normpath(mount / relative))
        if root != mount and mount not in root.parents:
            raise StorageError(f"checkpoint_storage.storage_path {storage_path!r} leaves host_path {host_path!r}")
        shown = str(root) if host_path is None else os.path.normpath(os.path.join(host_path, relative))
        return cls(root, shown_as=shown)
