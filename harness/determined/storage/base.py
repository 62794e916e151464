"""The protocol of checkpoint storage."""

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from determined.errors import StorageError

METADATA_FILE = "metadata.json"
HASHES_FILE = ".hashes.json"
CHECKPOINT_ID_PATTERN = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

Selector = Callable[[str], bool]
Finish = Callable[[Path], None]
PartUpload = Callable[[str, Path, Iterable[str]], dict[str, str]]
"""Called with a checkpoint's id, a folder and names of files below it; returns the hash of each file."""


def is_checkpoint_id(text: str) -> bool:
    """Returns True for a UUID as ``str(uuid.uuid4())`` writes it, the only form of a checkpoint id."""
    return re.fullmatch(CHECKPOINT_ID_PATTERN, text) is not None


def checkpoint_folder(root: Path, uuid: str) -> Path:
    """Returns the folder of a checkpoint below ``root``. Raises StorageError if ``uuid`` is not a UUID.

    All code, in tasks and in the master, builds paths from checkpoint ids with this function.
    """
    return root / checked_id(uuid)


def checked_id(uuid: str) -> str:
    """Returns a checkpoint's id. Raises StorageError if ``uuid`` is not a UUID."""
    if not is_checkpoint_id(uuid):
        raise StorageError(f"{uuid[:80]!r} is not a checkpoint ID, which is a UUID in lower case")
    return uuid


class Storage(Protocol):
    """Stores checkpoints by uuid. A checkpoint exists with all its files or not at all."""

    @property
    def upload_part(self) -> PartUpload | None:
        """Returns how a machine stores its part of a checkpoint that another machine completes.

        None where every machine sees the folder that ``store_path`` yields, and puts its part there.
        """
        ...

    def store_path(self, uuid: str, finish: Finish) -> AbstractContextManager[Path]:
        """Yields a folder to write into, which becomes the checkpoint after the block.

        Args:
            uuid: identifier of the new checkpoint.
            finish: receives the folder and may add files to it.
        """
        ...

    def upload(self, source: Path, uuid: str, paths: list[str], finish: Finish) -> None:
        """Stores the named files and folders of ``source`` as a checkpoint.

        Args:
            source: the folder to copy from.
            uuid: identifier of the new checkpoint.
            paths: names below ``source``.
            finish: receives the folder of the checkpoint and may add files to it.
        """
        ...

    def restore_path(self, uuid: str, selector: Selector | None = None) -> AbstractContextManager[Path]:
        """Yields a folder with the checkpoint's files, valid inside the block. Do not change the files.

        Args:
            uuid: identifier of the checkpoint.
            selector: receives the name of each file and returns True if the file is needed; None selects all files.

        Raises:
            StorageError: the checkpoint does not exist, or a file has changed since it was stored.
        """
        ...

    def download(self, uuid: str, target: Path, selector: Selector | None = None) -> None:
        """Copies the checkpoint's files into ``target``.

        Args:
            uuid: identifier of the checkpoint.
            target: the folder to copy into.
            selector: receives the name of each file and returns True if the file is needed; None selects all files.
        """
        ...

    def resources(self, uuid: str) -> dict[str, int]:
        """Returns relative path → size in bytes; names of folders end with ``/``, their size is 0.

        Args:
            uuid: identifier of the checkpoint.
        """
        ...

    def read(self, uuid: str, path: str) -> bytes:
        """Returns the content of one file of the checkpoint.

        Args:
            uuid: identifier of the checkpoint.
            path: name of the file in the checkpoint.
        """
        ...

    def delete(self, uuid: str) -> None:
        """Removes the checkpoint. A checkpoint that does not exist is not an error.

        Args:
            uuid: identifier of the checkpoint.
        """
        ...

    def probe(self) -> None:
        """Writes and removes a small file. Raises StorageError if that fails."""
        ...
