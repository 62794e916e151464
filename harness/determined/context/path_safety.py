"""Checks that members of an archive stay below the target folder, and that there are not too many of them."""

import tarfile

from determined.errors import ContextError

MAX_PATH = 4096
MAX_MEMBERS = 100_000
"""Files, folders and links of a context, including parent folders that have no entry of their own."""
MAX_DEPTH = 64
MAX_PATH_CHARACTERS = 32 << 20
"""Of all paths of a context together."""
_MAX_HEADER_BYTES = 1 << 20
_LONG_HEADERS = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)


class TooManyMembers(ContextError):
    """An archive holds more members than the caller takes."""


class BoundedHeader(tarfile.TarInfo):
    """A header that is refused where it announces a long name of many bytes, which are read into memory at once."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "BoundedHeader":
        header = super().frombuf(buf, encoding, errors)
        if header.type in _LONG_HEADERS and header.size > _MAX_HEADER_BYTES:
            raise ContextError(f"the context has a header of {header.size:,} bytes")
        return header


def forget_members(tar: tarfile.TarFile) -> None:
    """Drops the list of members: a streamed archive keeps every member that it has read in memory."""
    tar.members = []  # type: ignore[attr-defined]  # the type stubs lack this attribute


class MemberLimit:
    """Counts the members of one archive and the folders that their paths name."""

    def __init__(self, most: int = MAX_MEMBERS) -> None:
        self._most = most
        self._left = most
        self._characters = MAX_PATH_CHARACTERS
        self._folders = {""}

    def take(self, path: str) -> str:
        """Returns the clean path of the next member. Raises ContextError for one that escapes, or one too many."""
        path_found = clean(path)
        if path_found.count("/") >= MAX_DEPTH:
            raise ContextError(f"the context has folders nested more than {MAX_DEPTH} deep: {path_found[:200]!r}")
        self._count(path_found)
        above = path_found.rpartition("/")[0]
        while above not in self._folders:
            self._folders.add(above)
            self._count(above)
            above = above.rpartition("/")[0]
        return path_found

    def _count(self, path: str) -> None:
        self._left -= 1
        self._characters -= len(path)
        if self._left < 0:
            raise TooManyMembers(f"the context holds more than {self._most:,} entries")
        if self._characters < 0:
            raise ContextError(f"the paths of the context have more than {MAX_PATH_CHARACTERS:,} characters")


def clean(path: str) -> str:
    """Returns the path without ``.`` and doubled slashes. Raises ContextError if it is absolute or has a ``..``.

    >>> clean("./a//b/")
    'a/b'
    """
    if path.startswith("/") or "\0" in path or len(path) > MAX_PATH:
        raise ContextError(f"the context has an entry outside of its folder: {path[:200]!r}")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ContextError(f"the context has an entry outside of its folder: {path[:200]!r}")
    return "/".join(parts)


def check_link(path: str, target: str) -> None:
    """Raises ContextError if a link at ``path`` to ``target`` leads out of the top folder."""
    depth = path.count("/")
    if target.startswith("/") or not target or "\0" in target:
        raise ContextError(f"the context has a link that points out of its folder: {path!r} to {target[:200]!r}")
    for part in target.split("/"):
        if part in ("", "."):
            continue
        depth += -1 if part == ".." else 1
        if depth < 0:
            raise ContextError(f"the context has a link that points out of its folder: {path!r} to {target[:200]!r}")
