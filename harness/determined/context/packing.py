"""Packs a user's folder into a context."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from determined.context.archive import LIMIT, Code, ContextArchive, Member, write
from determined.context.ignore import FILE_NAME, line_for
from determined.context.known_folders import KnownFolders, fingerprint
from determined.context.left_out import comment_of
from determined.context.links import repository_of
from determined.context.walk import Walk, WalkEntry, stamp_of, walk
from determined.errors import ContextError

BIGGEST = 5


def pack(
    folder: Path,
    includes: Sequence[Path] = (),
    *,
    limit: int = LIMIT,
    follow_links: bool = False,
    exclude: Sequence[str] = (),
    known: KnownFolders | None = None,
) -> ContextArchive:
    """Packs ``folder`` and each of ``includes``: folders under their name, files as they are.

    ``exclude`` are patterns in addition to those of the folder's ``.detignore``; they do not apply to ``includes``.

    Links inside a folder stay links. The target of a link that leaves the folder is packed in its place if both are in
    one git repository or with ``follow_links``; ``followed`` names it, and it counts for the limit. ``skipped`` names
    special and unreadable files and broken links.

    With ``known`` a folder that was packed before and has not changed is not read, unless ``data`` is asked for.

    Raises ContextError if ``folder`` is no folder, names collide, a link leaves the repository, or more than ``limit``
    bytes would be sent, or no file at all.
    """
    if not folder.is_dir():
        raise ContextError(f"{folder} is not a folder" if folder.exists() else f"{folder} does not exist")
    found = walk(folder, follow_links=follow_links, exclude=exclude)
    named = [("", folder, entry) for entry in found.entries]
    skipped, followed = list(found.skipped), list(found.followed)
    roots = {entry.path for entry in found.entries if "/" not in entry.path}
    for include in includes:
        name = Path(os.path.abspath(include)).name
        if name in roots:
            raise ContextError(f"{include}: the context already has {name} at its top level")
        roots.add(name)
        below, walked = _included(include, name, follow_links)
        named += below
        skipped += [f"{name}/{reason}" for reason in walked.skipped]
        followed += [f"{name}/{link}" for link in walked.followed]
    _check_size(named, limit)
    placed = [("/".join(part for part in (prefix, entry.path) if part), entry) for prefix, _, entry in named]
    comment = comment_of(folder, {Path(os.path.abspath(each)).name: each for each in includes if each.is_dir()})
    code = partial(_code, folder, exclude)
    if known is None:
        return replace(_packed(folder, placed, comment, skipped, followed), code=code)
    mark = fingerprint(placed, comment)
    digest = known.find(mark)
    if digest is not None:
        size = sum(entry.size for _, entry in placed)
        forget = partial(known.forget, mark)
        load = partial(_load, folder, placed, comment, digest, forget)
        return ContextArchive(load, digest, size, skipped, followed, code)
    unread = len(skipped)
    packed = _packed(folder, placed, comment, skipped, followed)
    if len(packed.skipped) == unread:
        known.add(mark, packed.hash, (entry for _, entry in placed))
    return replace(packed, code=code)


def _code(folder: Path, exclude: Sequence[str]) -> Code:
    if repository_of(os.path.realpath(folder)) is None:
        return None, ""
    from determined.context.code_state import code_state  # a folder without a repository needs no processes

    state, warning = code_state(folder, exclude)
    return None if state is None else state.to_json(), warning


def _packed(
    folder: Path,
    placed: Sequence[tuple[str, WalkEntry]],
    comment: str,
    skipped: Sequence[str] = (),
    followed: Sequence[str] = (),
) -> ContextArchive:
    omitted = list(skipped)
    members = [member for path, entry in placed if (member := _read(path, entry, omitted)) is not None]
    if all(member.is_folder for member in members):
        raise ContextError(
            f"the context folder {folder} has no files to send; give the folder with your code (if it has files, "
            f"{FILE_NAME} excludes them)"
        )
    return write(members, omitted, followed, comment)


def _load(
    folder: Path, placed: Sequence[tuple[str, WalkEntry]], comment: str, digest: str, forget: Callable[[], None]
) -> bytes:
    packed = _packed(folder, placed, comment)
    if packed.hash != digest:
        forget()
        raise ContextError(f"files of {folder} changed while it was sent; submit it again")
    return packed.data


Named = tuple[str, Path, WalkEntry]


def _included(include: Path, name: str, follow_links: bool) -> tuple[list[Named], Walk]:
    if include.is_dir():
        found = walk(include, follow_links=follow_links)
        top = WalkEntry("", include, 0o755, 0, is_folder=True)
        entries = [(name, include, entry) for entry in (top, *found.entries)]
        return entries, found
    if not include.is_file():
        raise ContextError(f"{include} cannot be included: " + ("no file" if include.exists() else "it does not exist"))
    facts = include.stat()
    entry = WalkEntry(name, include, facts.st_mode & 0o777, int(facts.st_mtime), facts.st_size, stamp=stamp_of(facts))
    return [("", include.parent, entry)], Walk()


def _check_size(named: list[Named], limit: int) -> None:
    total = sum(entry.size for _, _, entry in named)
    if total <= limit:
        return
    biggest = sorted(named, key=lambda each: (-each[2].size, each[2].path))[:BIGGEST]
    lines = [f"the context holds {total:,} bytes of files, more than the limit of {limit:,}; the biggest:"]
    for prefix, root, entry in biggest:
        shown = f"{prefix}/{entry.path}" if prefix else entry.path
        advice = "" if _is_code(entry.path) else f"    exclude it with {line_for(entry.path)} in {root / FILE_NAME}"
        lines.append(f"  {entry.size:>13,}  {shown}{advice}")
    raise ContextError("\n".join(lines))


def _is_code(path: str) -> bool:
    """Returns True for files that nobody should be advised to leave out."""
    return path.endswith((".py", ".sh", ".yaml", ".yml", ".toml"))


def _read(path: str, entry: WalkEntry, skipped: list[str]) -> Member | None:
    if entry.is_folder or entry.link is not None:
        return Member(path, entry.mode, entry.mtime, is_folder=entry.is_folder, link=entry.link)
    try:
        content = entry.source.read_bytes()
    except OSError as error:
        skipped.append(f"{path}: {error.strerror}")
        return None
    return Member(path, entry.mode, entry.mtime, content)
