"""Converts the flat file list of the official client into a context."""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from determined.context.archive import LIMIT, ContextArchive, Member, write
from determined.context.path_safety import MemberLimit, clean
from determined.errors import ContextError

FILE, FOLDER = 48, 53  # the ASCII codes of tar's type flags


def from_files(files: Iterable[Mapping[str, Any]], *, limit: int = LIMIT) -> ContextArchive:
    """Returns the packed context. Raises ContextError for unsafe paths, duplicates and invalid entries.

    ``skipped`` names the empty folders: as such the official client sends links to folders.
    """
    members: dict[str, Member] = {}
    counted = MemberLimit()
    size = 0
    for file in files:
        member = _member(file)
        if not counted.take(member.path):
            continue
        if member.path in members:
            if member.is_folder and members[member.path].is_folder:
                continue
            raise ContextError(f"the context holds {member.path!r} twice")
        size += len(member.content)
        if size > limit:
            raise ContextError(f"the context holds more than {limit:,} bytes of files")
        members[member.path] = member
    for path in members:
        _check_folders_above(path, members)
    filled = {path.rpartition("/")[0] for path in members}
    empty = sorted(path for path, member in members.items() if member.is_folder and path not in filled)
    advice = (
        "it arrived empty; for a link to a folder, --include the folder, or use this product's det, which follows it"
    )
    return write(members.values(), skipped=[f"{path}/: {advice}" for path in empty])


def _member(entry: Mapping[str, Any]) -> Member:
    path = entry.get("path") if isinstance(entry, Mapping) else None
    if not isinstance(path, str):
        raise ContextError("the context has an entry without a path")
    name = clean(path)
    kind = entry.get("type", FILE)
    if kind not in (FILE, FOLDER):
        raise ContextError(f"the context holds {name!r} of type {kind!r}; a context may hold only files and folders")
    try:
        mode, mtime = int(entry.get("mode") or 0o644) & 0o777, int(entry.get("mtime") or 0)
        name.encode()
        content = base64.b64decode(entry.get("content") or "", validate=True)
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:
        raise ContextError(f"the context holds {name!a} that cannot be read: {error}") from None
    if kind == FOLDER:
        return Member(name, mode | 0o700, mtime, is_folder=True)
    return Member(name, mode, max(0, mtime), content)


def _check_folders_above(path: str, members: Mapping[str, Member]) -> None:
    above = path.rpartition("/")[0]
    while above:
        if above in members and not members[above].is_folder:
            raise ContextError(f"the context holds {path!r} below {above!r}, which is a file")
        above = above.rpartition("/")[0]
