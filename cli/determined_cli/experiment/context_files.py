"""The files of an experiment's context, read from the archive that the master sends."""

import base64
import hashlib
import io
import tarfile
from dataclasses import dataclass
from typing import IO

from determined.context.archive_reader import is_text
from determined.context.path_safety import BoundedHeader, MemberLimit, forget_members
from determined.errors import ContextError

MAX_TEXT_BYTES = 256 << 10
"""Larger files are compared by their hash."""
MAX_LINES = 10_000
MAX_TEXTS_BYTES = 64 << 20
"""Of all texts of a context together."""
_CHUNK = 1 << 20


@dataclass(frozen=True)
class ContextFile:
    """A file of a context. ``text`` is None if it is none, or too long to be compared by lines."""

    digest: str
    text: str | None


def read_files(archive: str) -> dict[str, ContextFile]:
    """Returns the files and links of a context by path. ``archive``: tar.gz in base64, as the master sends it.

    Raises ContextError for an archive that cannot be read.
    """
    files: dict[str, ContextFile] = {}
    if not archive:
        return files
    members, left = MemberLimit(), MAX_TEXTS_BYTES
    try:
        data = io.BytesIO(base64.b64decode(archive))
        with tarfile.open(fileobj=data, mode="r|gz", tarinfo=BoundedHeader) as tar:
            for header in tar:
                forget_members(tar)
                name = members.take(header.name)
                if header.issym():
                    files[name] = _of(io.BytesIO(f"link to {header.linkname}".encode(errors="replace")), MAX_TEXT_BYTES)
                elif header.isreg():
                    content = tar.extractfile(header)
                    assert content is not None
                    files[name] = file = _of(content, min(MAX_TEXT_BYTES, left))
                    left -= len(file.text or "")
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise ContextError(f"cannot read the context: {error}") from None
    return files


def _of(content: IO[bytes], most: int) -> ContextFile:
    """Returns a file; its text only if it has at most ``most`` bytes."""
    head = content.read(most + 1)
    digest = hashlib.sha256(head)
    while chunk := content.read(_CHUNK):
        digest.update(chunk)
    is_short = len(head) <= most and is_text(head) and head.count(b"\n") <= MAX_LINES
    return ContextFile(digest.hexdigest(), head.decode(errors="replace") if is_short else None)
