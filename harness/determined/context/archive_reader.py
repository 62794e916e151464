"""Reads a stored context from its archive without writing a file."""

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import zstandard

from determined.context.path_safety import MAX_MEMBERS, BoundedHeader, MemberLimit, clean
from determined.context.unpacking import MAX_UNPACKED
from determined.errors import ContextError

SNIFFED = 1024
"""Bytes of a file that tell what it is."""
MAX_READ_BYTES = 32 << 20
"""Of a file that is given whole."""


@dataclass(frozen=True)
class Entry:
    """``path`` is clean; ``link`` is where a link leads. ``is_text``: as far as its beginning tells."""

    path: str
    size: int
    mtime: float
    is_folder: bool = False
    link: str | None = None
    is_text: bool = False


def entries(path: Path, most: int = MAX_MEMBERS) -> list[Entry]:
    """Every entry, folders above them too where the archive leaves them out, in the order of their paths.

    Raises TooManyMembers if there are more than ``most``.
    """
    found: dict[str, Entry] = {}
    with _opened(path) as tar:
        for header, name in _members(tar, most):
            if header.isreg():
                content = tar.extractfile(header)
                assert content is not None
                found[name] = Entry(name, header.size, header.mtime, is_text=is_text(content.read(SNIFFED)))
            elif header.issym():
                found[name] = Entry(name, 0, header.mtime, link=header.linkname)
            else:
                found[name] = Entry(name, 0, header.mtime, is_folder=True)
    for name in list(found):
        above = name.rpartition("/")[0]
        while above and above not in found:
            found[above] = Entry(above, 0, 0, is_folder=True)
            above = above.rpartition("/")[0]
    return [found[name] for name in sorted(found, key=lambda name: name.split("/"))]


def read(path: Path, name: str, most: int | None = None) -> tuple[bytes, int] | None:
    """The bytes of one file, of a large one the first ``most``, and how many it has; None where there is no such file.
    Raises ContextError for a name that escapes, and for a file larger than ``MAX_READ_BYTES`` without ``most``."""
    wanted = clean(name)
    with _opened(path) as tar:
        for header, found in _members(tar):
            if found == wanted and header.isreg():
                if most is None and header.size > MAX_READ_BYTES:
                    raise ContextError(
                        f"{wanted!r} has {header.size:,} bytes, and single files are given up to {MAX_READ_BYTES:,}; "
                        "download the whole model definition instead"
                    )
                content = tar.extractfile(header)
                assert content is not None
                return content.read(header.size if most is None else min(most, header.size)), header.size
    return None


def is_text(head: bytes) -> bool:
    """Whether it reads as UTF-8 without a zero byte; what is cut off at the end of ``head`` is no fault."""
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
            reader: IO[bytes] = _Bounded(zstandard.ZstdDecompressor().stream_reader(file))  # type: ignore[assignment]
            with tarfile.open(fileobj=reader, mode="r|", tarinfo=BoundedHeader) as tar:
                yield tar
    except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError) as error:
        raise ContextError(f"the context cannot be read: {error}") from None


def _members(tar: tarfile.TarFile, most: int = MAX_MEMBERS) -> Iterator[tuple[tarfile.TarInfo, str]]:
    members = MemberLimit(most)
    for header in tar:
        # A streamed archive remembers every member that it has passed.
        tar.members = []  # type: ignore[attr-defined]
        name = members.take(header.name)
        if name and (header.isreg() or header.issym() or header.isdir()):
            yield header, name


class _Bounded:
    """A stream that ends in an error where it goes on for ever: a bomb."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._left = MAX_UNPACKED

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ContextError("the context unpacks to far more than a context may hold")
        return data
