"""Streams the files of a checkpoint as one archive in bounded chunks."""

import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import BinaryIO

from fastapi.responses import StreamingResponse

from determined_master.checkpoints.storage_threads import in_thread

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class FolderEntry:
    """A file, open for reading while it is the newest entry, or a folder, whose ``file`` is None.

    Parameters:
        name: relative path, with slashes.
        size: of the file in bytes.
        mode: as ``stat`` has it.
        mtime: seconds since the epoch.
    """

    name: str
    size: int
    mode: int
    mtime: float
    file: BinaryIO | None


async def respond(entries: Iterator[FolderEntry], accept: str) -> StreamingResponse:
    """Returns a response that streams the entries as tar.gz, or as zip if only that is accepted.

    Errors up to the first entry are raised before the response begins.
    """
    is_zip = "zip" in accept and "gzip" not in accept
    first = await in_thread(next, entries, None)
    chunks = (zip_chunks if is_zip else tar_chunks)(chain([first] if first else [], entries))
    return StreamingResponse(_rest(chunks), media_type="application/zip" if is_zip else "application/gzip")


def tar_chunks(entries: Iterator[FolderEntry]) -> Iterator[bytes]:
    """Yields a tar.gz."""
    packer = zlib.compressobj(level=1, wbits=31)
    for entry in entries:
        info = tarfile.TarInfo(entry.name)
        info.type = tarfile.REGTYPE if entry.file else tarfile.DIRTYPE
        info.size = entry.size if entry.file else 0
        info.mode = stat.S_IMODE(entry.mode)
        info.mtime = int(entry.mtime)
        yield packer.compress(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
        if entry.file:
            for chunk in _content(entry.file, info.size):
                yield packer.compress(chunk)
            yield packer.compress(bytes(-info.size % tarfile.BLOCKSIZE))
    yield packer.compress(bytes(2 * tarfile.BLOCKSIZE)) + packer.flush()


def zip_chunks(entries: Iterator[FolderEntry]) -> Iterator[bytes]:
    """Yields a zip, not compressed."""
    buffer = _Buffer()
    with zipfile.ZipFile(buffer, "w") as archive:
        for entry in entries:
            name = entry.name.encode("utf-8", "replace").decode() + ("" if entry.file else "/")
            moment = time.localtime(max(entry.mtime, time.mktime((1980, 1, 2, 0, 0, 0, 0, 0, -1))))
            info = zipfile.ZipInfo(name, moment[:6])
            info.external_attr = (entry.mode & 0xFFFF) << 16
            with archive.open(info, "w", force_zip64=True) as member:
                for chunk in _content(entry.file, entry.size) if entry.file else ():
                    member.write(chunk)
                    yield buffer.take()
    yield buffer.take()


def _content(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yields exactly ``size`` bytes. Raises OSError if the file has fewer, so that the download breaks off."""
    while size:
        chunk = file.read(min(CHUNK_BYTES, size))
        if not chunk:
            raise OSError("a file of the checkpoint became shorter while it was read")
        size -= len(chunk)
        yield chunk


class _Buffer:
    """Buffer between the zip archiver and the response. It cannot seek, as a stream cannot."""

    def __init__(self) -> None:
        self._chunks: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._chunks.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Does nothing: ``take`` removes written bytes."""

    def close(self) -> None:
        """Does nothing: there is no underlying file."""

    def take(self) -> bytes:
        data = b"".join(self._chunks)
        self._chunks.clear()
        return data


async def _rest(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (chunk := await in_thread(_next, chunks)) is not None:
        if chunk:
            yield chunk


def _next(chunks: Iterator[bytes]) -> bytes | None:
    return next(chunks, None)
