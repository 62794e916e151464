"""Reads a stored context from its archive without writing a file."""

import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import zstandard

from determined.context.path_safety import MAX_MEMBERS, BoundedHeader, MemberLimit, clean, forget_members
from determined.context.unpacking import MAX_UNPACKED
from determined.errors import ContextError

SNIFFED = 1024
"""Number of first bytes that determine whether a file is text."""
MAX_READ_BYTES = 32 << 20
"""Maximum size of a file that is returned whole."""


@dataclass(frozen=True)
class ArchiveEntry:
    """An entry of an archive.

    ``path`` is clean; ``link`` is the target of a link. ``is_text`` judges by the first bytes.
    """

    path: str
    size: int
    mtime: float
    is_folder: bool = False
    link: str | None = None
    is_text: bool = False


def entries(path: Path, most: int = MAX_MEMBERS) -> list[ArchiveEntry]:
    """Returns every entry in the order of the paths, and parent folders that the archive omits.

    Raises TooManyMembers if there are more than ``most``.
    """
    members: dict[str, ArchiveEntry] = {}
    with _opened(path) as tar:
        for header, name in _members(tar, most):
            if header.isreg():
                content = tar.extractfile(header)
                assert content is not None
                members[name] = ArchiveEntry(name, header.size, header.mtime, is_text=is_text(content.read(SNIFFED)))
            elif header.issym():
                members[name] = ArchiveEntry(name, 0, header.mtime, link=header.linkname)
            else:
                members[name] = ArchiveEntry(name, 0, header.mtime, is_folder=True)
    for name in list(members):
        above = name.rpartition("/")[0]
        while above and above not in members:
            members[above] = ArchiveEntry(above, 0, 0, is_folder=True)
            above = above.rpartition("/")[0]
    return [members[name] for name in sorted(members, key=lambda name: name.split("/"))]


def read(path: Path, name: str, most: int | None = None) -> tuple[bytes, int] | None:
    """Returns the first ``most`` bytes of a file and its size; None if there is no such file.

    Raises ContextError for a name outside of the context, and for a file above ``MAX_READ_BYTES`` without ``most``.
    """
    wanted = clean(name)
    with _opened(path) as tar:
        for header, found in _members(tar):
            if found == wanted and header.isreg():
                if most is None and header.size > MAX_READ_BYTES:
                    raise ContextError(
                        f"{wanted!r} has {header.size:,} bytes, more than the {MAX_READ_BYTES:,} bytes to read; "
                        "download the whole context instead"
                    )
                content = tar.extractfile(header)
                assert content is not None
                return content.read(header.size if most is None else min(most, header.size)), header.size
    return None


class ArchiveTooLarge(ContextError):
    """The files of an archive have more bytes than its reader wants to look at."""


@contextmanager
def small_files(path: Path, most: int, total: "int | None" = None) -> Iterator[Callable[[str], "bytes | None"]]:
    """Reads the archive once; yields a function that returns the content of a file, or None if there is none.

    A file with more than ``most`` bytes is cut off after the next one. Raises ContextError for a broken archive, and
    the function for a name outside of the context; ArchiveTooLarge as soon as its files have more than ``total`` bytes.
    """
    places: dict[str, tuple[int, int]] = {}
    size = 0
    with tempfile.TemporaryFile() as kept, _opened(path) as tar:
        for header, name in _members(tar):
            size += header.size
            if total is not None and size > total:
                raise ArchiveTooLarge(f"the context has more than {total} bytes")
            if header.isreg():
                content = tar.extractfile(header)
                assert content is not None
                places[name] = (kept.tell(), min(header.size, most + 1))
                kept.write(content.read(most + 1))

        def content_of(name: str) -> "bytes | None":
            place = places.get(clean(name))
            if place is None:
                return None
            kept.seek(place[0])
            return kept.read(place[1])

        yield content_of


def is_text(head: bytes) -> bool:
    """Returns True for UTF-8 without a zero byte; an incomplete character at the end of ``head`` is allowed."""
    if b"\0" in head:
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


@contextmanager
def _opened(path: Path) -> Iterator[tarfile.TarFile]:
    try:
        with path.open("rb") as file:
            reader = _Bounded(zstandard.ZstdDecompressor().stream_reader(file))
            with tarfile.open(fileobj=reader, mode="r|", tarinfo=BoundedHeader) as tar:  # type: ignore[call-overload]  # only read() is called
                yield tar
    except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError) as error:
        raise ContextError(f"cannot read the context: {error}") from None


def _members(tar: tarfile.TarFile, most: int = MAX_MEMBERS) -> Iterator[tuple[tarfile.TarInfo, str]]:
    members = MemberLimit(most)
    for header in tar:
        forget_members(tar)
        name = members.take(header.name)
        if name and (header.isreg() or header.issym() or header.isdir()):
            yield header, name


class _Bounded:
    """A stream that raises an error after a limit, as a protection against decompression bombs."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = MAX_UNPACKED

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ContextError("the unpacked context is larger than the limit")
        return data
