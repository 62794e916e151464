"""Streams the folder of a checkpoint as one archive in bounded chunks.

Only regular files and folders are archived, and every one is opened relative to the folder that holds it, without
following a link: a checkpoint is written by user code, which may put links, pipes and devices there.
"""

import os
import stat
import tarfile
import time
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

from fastapi.responses import StreamingResponse

from determined_master.checkpoints.storage import in_thread

CHUNK_BYTES = 1 << 20
MAX_DEPTH = 64
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


async def respond(open_folder: Callable[[], int], accept: str) -> StreamingResponse:
    """Returns a response that streams a folder as tar.gz, or as zip if only that is accepted.

    ``open_folder`` returns a descriptor of the folder; its errors are raised before the response begins.
    """
    is_zip = "zip" in accept and "gzip" not in accept
    chunks = (zip_chunks if is_zip else tar_chunks)(open_folder)
    await in_thread(_next, chunks)
    return StreamingResponse(_rest(chunks), media_type="application/zip" if is_zip else "application/gzip")


def tar_chunks(open_folder: Callable[[], int]) -> Iterator[bytes]:
    """Yields a tar.gz of the folder. The first chunk is empty and says that the folder is open."""
    packer = zlib.compressobj(level=1, wbits=31)
    with _opened(open_folder) as folder:
        yield b""
        for entry in _entries(folder):
            info = tarfile.TarInfo(entry.name)
            info.type = tarfile.REGTYPE if entry.file else tarfile.DIRTYPE
            info.size = entry.facts.st_size if entry.file else 0
            info.mode = stat.S_IMODE(entry.facts.st_mode)
            info.mtime = int(entry.facts.st_mtime)
            yield packer.compress(info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape"))
            if entry.file:
                for chunk in _content(entry.file, info.size):
                    yield packer.compress(chunk)
                yield packer.compress(bytes(-info.size % tarfile.BLOCKSIZE))
    yield packer.compress(bytes(2 * tarfile.BLOCKSIZE)) + packer.flush()


def zip_chunks(open_folder: Callable[[], int]) -> Iterator[bytes]:
    """Yields a zip of the folder, not compressed. The first chunk is empty and says that the folder is open."""
    buffer = _Buffer()
    with _opened(open_folder) as folder:
        yield b""
        with zipfile.ZipFile(buffer, "w") as archive:
            for entry in _entries(folder):
                name = entry.name.encode("utf-8", "replace").decode() + ("" if entry.file else "/")
                moment = time.localtime(max(entry.facts.st_mtime, time.mktime((1980, 1, 2, 0, 0, 0, 0, 0, -1))))
                info = zipfile.ZipInfo(name, moment[:6])
                info.external_attr = (entry.facts.st_mode & 0xFFFF) << 16
                with archive.open(info, "w", force_zip64=True) as member:
                    for chunk in _content(entry.file, entry.facts.st_size) if entry.file else ():
                        member.write(chunk)
                        yield buffer.take()
        yield buffer.take()


@dataclass(frozen=True)
class _Entry:
    """A regular file, open while it is the newest entry, or a folder, whose ``file`` is None."""

    name: str
    facts: os.stat_result
    file: BinaryIO | None


def _entries(folder: int, prefix: str = "", depth: int = 0) -> Iterator[_Entry]:
    """Yields the entries of the folder by name, each folder before its content."""
    if depth > MAX_DEPTH:
        raise OSError(f"folders are nested too deeply to be archived: {prefix[:80]}…")
    for name in sorted(os.listdir(folder)):
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            continue
        number = os.open(name, _OPEN, dir_fd=folder)
        facts = os.fstat(number)
        if stat.S_ISDIR(facts.st_mode):
            try:
                yield _Entry(prefix + name, facts, None)
                yield from _entries(number, f"{prefix}{name}/", depth + 1)
            finally:
                os.close(number)
        else:
            with os.fdopen(number, "rb", buffering=0) as file:
                # The open file decides: the path may have been replaced since.
                if stat.S_ISREG(facts.st_mode):
                    yield _Entry(prefix + name, facts, file)


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


@contextmanager
def _opened(open_folder: Callable[[], int]) -> Iterator[int]:
    number = open_folder()
    try:
        yield number
    finally:
        os.close(number)


async def _rest(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    while (chunk := await in_thread(_next, chunks)) is not None:
        if chunk:
            yield chunk


def _next(chunks: Iterator[bytes]) -> bytes | None:
    return next(chunks, None)
