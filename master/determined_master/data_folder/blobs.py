"""Content-addressed storage of contexts: tar.zst files, each named by the SHA-256 of its bytes."""

import base64
import contextlib
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from determined.context import check_archive, to_tgz
from determined.errors import BadRequest, ContextError, NotFound
from determined.link.stale_files import UnusedEntry
from determined_master.offloading.threads import USER_FILES

_HASH = re.compile(r"[0-9a-f]{64}")
_INCOMING = re.compile(r"\.incoming-[A-Za-z0-9_]+")


def read_as_tgz(path: Path, limit: int) -> str:
    """Returns a blob as tar.gz in base64. Raises ContextError if its tar has more than ``limit`` bytes, or members that
    nobody would unpack. Blocking."""
    with path.open("rb") as file:
        check_archive(file, limit)
    return base64.b64encode(to_tgz(path.read_bytes(), limit=limit)).decode()


@dataclass(frozen=True)
class Limits:
    """Maximum size of a context in bytes: as uploaded, and as unpacked tar."""

    sent: int
    unpacked: int


class Blobs:
    """Blob store. A file gets its name only when it is complete and synced; equal content is stored once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def path(self, digest: str) -> Path:
        """Returns the path. Raises NotFound for an invalid name or an unknown blob."""
        path = self._place(digest)
        if not path.is_file():
            raise NotFound(f"the master does not have context {digest}; send it again")
        return path

    def touch(self, digest: str) -> None:
        """Renews the blob's age, since the next request may name it. Raises NotFound as ``path`` does."""
        try:
            os.utime(self.path(digest))
        except FileNotFoundError:  # removed at this moment
            self.path(digest)

    def size(self, digest: str) -> int | None:
        try:
            return self.path(digest).stat().st_size
        except NotFound:
            return None

    def temporary(self) -> IO[bytes]:
        """Creates a temporary file next to the blobs for an upload; it is deleted unless it is kept."""
        return tempfile.NamedTemporaryFile(dir=self.folder, prefix=".incoming-", delete=False)

    async def receive(self, digest: str, chunks: AsyncIterator[bytes], limits: Limits) -> int:
        """Receives the blob with hash ``digest`` and returns its size. Raises BadRequest for other bytes, and for more
        than ``limits``."""
        self._place(digest)
        summing = hashlib.sha256()
        size = 0
        file = self.temporary()
        try:
            async for chunk in chunks:
                size += len(chunk)
                if size > limits.sent:
                    raise BadRequest(f"the context is larger than {limits.sent} bytes")
                summing.update(chunk)
                await USER_FILES.run(file.write, chunk)
            if summing.hexdigest() != digest:
                raise BadRequest("the received bytes do not match the announced hash; send them again")
            await USER_FILES.run(_check_unpacked, file, limits.unpacked)
            await USER_FILES.run(self._keep, file, digest)
        finally:
            await USER_FILES.run(_discard, file)
        return size

    def keep_bytes(self, data: bytes) -> str:
        """Stores bytes from memory; blocking."""
        digest = hashlib.sha256(data).hexdigest()
        file = self.temporary()
        try:
            file.write(data)
            self._keep(file, digest)
        finally:
            _discard(file)
        return digest

    def all(self) -> list[UnusedEntry]:
        """Returns every blob and every unfinished upload. Only regular files with valid names. Blocking."""
        blobs = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if not _HASH.fullmatch(entry.name) and not _INCOMING.fullmatch(entry.name):
                    continue
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_file(follow_symlinks=False):
                        status = entry.stat(follow_symlinks=False)
                        blobs.append(UnusedEntry(entry.name, status.st_mtime, status.st_size))
        return blobs

    def drop(self, entry: UnusedEntry) -> None:
        """Removes a blob or an aborted upload, unless it was renewed since it was listed. Blocking."""
        if not _INCOMING.fullmatch(entry.name):
            self._place(entry.name)
        with contextlib.suppress(FileNotFoundError):
            if (self.folder / entry.name).stat().st_mtime == entry.changed:
                (self.folder / entry.name).unlink()

    def _place(self, digest: str) -> Path:
        if not _HASH.fullmatch(digest):
            raise NotFound("the name of a context must be the SHA-256 of its bytes")
        return self.folder / digest

    def _keep(self, file: IO[bytes], digest: str) -> None:
        file.flush()
        os.fsync(file.fileno())
        os.replace(file.name, self._place(digest))
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _check_unpacked(file: IO[bytes], limit: int) -> None:
    """Rejects decompression bombs, and what an agent would refuse to unpack. Reads in pieces, up to the first fault."""
    file.flush()
    try:
        with open(file.name, "rb") as written:
            check_archive(written, limit)
    except ContextError as error:
        raise BadRequest(error.message) from None


def _discard(file: IO[bytes]) -> None:
    """Closes a temporary file and removes it, unless it was kept under another name."""
    Path(file.name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # on a full disk closing fails, because it flushes the buffer
        file.close()
