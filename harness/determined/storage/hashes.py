"""Hashes of a checkpoint's files, kept beside them in ``.hashes.json``: relative path → SHA-256."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from determined.errors import StorageError
from determined.storage.base import HASHES_FILE

_CHUNK_BYTES = 1 << 20


def sha256(path: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def written(hashes: Mapping[str, str]) -> bytes:
    """Returns the content of the file of hashes."""
    return json.dumps(dict(sorted(hashes.items())), indent=1).encode()


def read(content: bytes | None, uuid: str) -> dict[str, str]:
    """Returns the hashes in a file's content; none where there is no such file, as in checkpoints of Determined.

    Raises:
        StorageError: the content is damaged.
    """
    if content is None:
        return {}
    try:
        return {str(name): str(value) for name, value in json.loads(content).items()}
    except (ValueError, AttributeError):
        raise StorageError(f"checkpoint {uuid} is damaged: its {HASHES_FILE} cannot be read") from None


def verify(folder: Path, names: Iterable[str], expected: Mapping[str, str], uuid: str) -> None:
    """Compares the files below ``folder`` with their hashes; files without a hash pass.

    Raises:
        StorageError: a file has changed since the checkpoint was stored.
    """
    for name in names:
        if name in expected and sha256(folder / name) != expected[name]:
            raise StorageError(
                f"checkpoint {uuid} is damaged: {name} has changed since it was stored; use another checkpoint"
            )
