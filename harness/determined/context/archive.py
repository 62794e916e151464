"""Writes an archive from its members: a zstd-compressed tar, equal for equal members."""

import hashlib
import io
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import zstandard

from determined.context.path_safety import MemberLimit

LIMIT = 99_614_720
"""Maximum file content in bytes: 128 MiB of base64, less a mebibyte for headers."""

_LEVEL = 3  # higher levels cost seconds and save little on sources


Code = tuple[dict[str, Any] | None, str]
"""The state of the code of a context's folder in git, as JSON, and a warning."""


def no_code() -> Code:
    """Returns the state of a folder that is not asked for."""
    return None, ""


@dataclass(frozen=True)
class Member:
    """One entry of the archive. ``path`` is relative, clean and unique."""

    path: str
    mode: int
    mtime: int
    content: bytes = field(default=b"", repr=False)
    is_folder: bool = False
    link: str | None = None


@dataclass(frozen=True)
class ContextArchive:
    """A packed context. ``size`` counts file content; ``skipped`` lists omitted files with the reasons.

    ``followed`` names the links whose targets were packed in their place, as ``path -> target``. ``load`` returns the
    archive; of a folder that was packed before it reads the files, and raises ContextError if they changed meanwhile.
    ``code`` returns the state of its folder in git with a warning, see :mod:`determined.context.code_state`.
    """

    load: Callable[[], bytes] = field(repr=False)
    hash: str
    size: int
    skipped: list[str] = field(default_factory=list)
    followed: list[str] = field(default_factory=list)
    code: Callable[[], Code] = field(default=no_code, repr=False, compare=False)

    @property
    def notes(self) -> list[str]:
        """Sentences about what was sent or left out otherwise than its path says, for the one who submits."""
        return [*(f"link followed: {link}" for link in self.followed), *(f"left out: {each}" for each in self.skipped)]

    def without_code(self) -> "ContextArchive":
        """Returns the same context, with which no state of its code is sent."""
        return replace(self, code=no_code)

    @cached_property
    def data(self) -> bytes:
        """The archive."""
        return self.load()


def write(
    members: Iterable[Member], skipped: Iterable[str] = (), followed: Iterable[str] = (), comment: str = ""
) -> ContextArchive:
    """Writes sorted members, owned by root, with their times; a folder gets the time of its newest file.

    ``comment`` becomes the comment of the archive, for which POSIX tar has a header that readers ignore.

    Raises ContextError if there are more members, or deeper folders, than a context may hold.
    """
    ordered = _with_folder_times(sorted(members, key=lambda each: each.path.split("/")))
    buffer = io.BytesIO()
    counted = MemberLimit()
    size = 0
    headers = {"comment": comment} if comment else {}
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT, pax_headers=headers) as tar:
        for member in ordered:
            counted.take(member.path)
            size += len(member.content)
            tar.addfile(_header(member), io.BytesIO(member.content))
    data = zstandard.ZstdCompressor(level=_LEVEL, threads=0).compress(buffer.getbuffer())
    return ContextArchive(lambda: data, hashlib.sha256(data).hexdigest(), size, list(skipped), list(followed))


def _with_folder_times(members: list[Member]) -> list[Member]:
    newest: dict[str, int] = {}
    for member in members:
        if not member.is_folder and member.link is None:
            above = member.path
            while "/" in above:
                above = above.rpartition("/")[0]
                newest[above] = max(newest.get(above, 0), member.mtime)
    return [
        Member(each.path, each.mode, newest.get(each.path, 0), is_folder=True) if each.is_folder else each
        for each in members
    ]


def _header(member: Member) -> tarfile.TarInfo:
    header = tarfile.TarInfo(member.path)
    header.mode, header.mtime = member.mode, member.mtime
    if member.is_folder:
        header.type = tarfile.DIRTYPE
    elif member.link is not None:
        header.type, header.linkname = tarfile.SYMTYPE, member.link
    else:
        header.size = len(member.content)
    return header
