"""Hashes of a checkpoint's files, kept beside them in ``.hashes.json``: relative path → hash."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from determined.errors import StorageError
from determined.storage.base import HASHES_FILE

BLOCK_BYTES = 64 << 20
BLOCKWISE = "sha256-64MiB:"
CHUNK_BYTES = 256 << 10


def digest(path: Path) -> str:
    """Returns the SHA-256 of a file in hexadecimal digits.

    A file of more than one block has ``sha256-64MiB:`` and the SHA-256 of the SHA-256s of its blocks of 64 MiB, so that
    several cores work at it.
    """
    size = path.stat().st_size
    if size <= BLOCK_BYTES:
        return _of_range(path, 0, size).hexdigest()
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        blocks = list(pool.map(lambda start: _of_range(path, start, BLOCK_BYTES).digest(), range(0, size, BLOCK_BYTES)))
    return BLOCKWISE + hashlib.sha256(b"".join(blocks)).hexdigest()


def _of_range(path: Path, start: int, length: int) -> "hashlib._Hash":
    hashed = hashlib.sha256()
    buffer = memoryview(bytearray(CHUNK_BYTES))
    with path.open("rb", buffering=0) as file:
        file.seek(start)
        while length and (count := file.readinto(buffer[: min(length, CHUNK_BYTES)])):
            hashed.update(buffer[:count])
            length -= count
    return hashed


def _has_hash(path: Path, expected: str) -> bool:
    """Returns True if a file has this hash. Earlier versions hashed large files as a whole, not in blocks."""
    if expected.startswith(BLOCKWISE):
        return digest(path) == expected
    return _of_range(path, 0, path.stat().st_size).hexdigest() == expected


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
        if name in expected and not _has_hash(folder / name, expected[name]):
            raise StorageError(
                f"checkpoint {uuid} is damaged: {name} has changed since it was stored; use another checkpoint"
            )
