"""The protocol of checkpoint storage, and the storage that a configuration names."""

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from determined.errors import StorageError
from determined_launch import environment

METADATA_FILE = "metadata.json"
HASHES_FILE = ".hashes.json"
CHECKPOINT_ID_PATTERN = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

Selector = Callable[[str], bool]
Finish = Callable[[Path], None]


def is_checkpoint_id(text: str) -> bool:
    """True for a UUID as ``str(uuid.uuid4())`` writes it. Nothing else names a checkpoint."""
    return re.fullmatch(CHECKPOINT_ID_PATTERN, text) is not None


def checkpoint_folder(root: Path, uuid: str) -> Path:
    """Returns the folder of a checkpoint below ``root``. Raises StorageError if ``uuid`` is not a UUID.

    Every path that contains a checkpoint's id is made here, in tasks and in the master.
    """
    if not is_checkpoint_id(uuid):
        raise StorageError(f"{uuid[:80]!r} is not the id of a checkpoint, which is a UUID in lower case")
    return root / uuid


class Storage(Protocol):
    """Checkpoints by uuid. A uuid is there with all its files or it is not there."""

    def store_path(self, uuid: str, finish: Finish) -> AbstractContextManager[Path]:
        """A folder to write into; at the end ``finish`` adds its files and the whole becomes the checkpoint."""
        ...

    def upload(self, source: Path, uuid: str, paths: list[str], finish: Finish) -> None:
        """Stores the named files and folders of ``source`` as the checkpoint."""
        ...

    def restore_path(self, uuid: str) -> AbstractContextManager[Path]:
        """A folder with the checkpoint's files, to read only."""
        ...

    def download(self, uuid: str, target: Path, selector: Selector | None = None) -> None:
        """Copies the checkpoint's files below ``target``."""
        ...

    def resources(self, uuid: str) -> dict[str, int]:
        """Relative path → size; folders end with ``/`` and have size 0."""
        ...

    def read(self, uuid: str, path: str) -> bytes:
        """One file of the checkpoint."""
        ...

    def delete(self, uuid: str) -> None:
        """Removes the checkpoint; it is no error where it is gone already."""
        ...

    def probe(self) -> None:
        """Writes and removes a small file. Raises StorageError where that cannot be done."""
        ...


def from_config(config: Mapping[str, Any] | str, environ: Mapping[str, str]) -> Storage:
    """The storage of a ``checkpoint_storage`` section; a plain string is a folder."""
    from determined.storage.directory import DirectoryStorage
    from determined.storage.shared_fs import SharedFSStorage

    if isinstance(config, str):
        return DirectoryStorage(Path(config))
    kind = config.get("type")
    if kind == "shared_fs":
        root = environ.get(environment.SHARED_FS) or environment.DEFAULT_SHARED_FS
        return SharedFSStorage.below(Path(root), config.get("storage_path"), host_path=config.get("host_path"))
    if kind == "directory":
        return DirectoryStorage(Path(str(config["container_path"])))
    raise StorageError(
        f"checkpoint_storage of type {kind!r} is not offered by this version; use shared_fs or directory"
    )
