"""What a folder holds: files, folders and inner links, less what is ignored or cannot be sent."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from determined.context.ignore import Ignore


@dataclass(frozen=True)
class Entry:
    """Something to send. ``path`` is relative to the walked folder; ``link`` the target of an inner link."""

    path: str
    source: Path
    mode: int
    mtime: int
    size: int = 0
    is_folder: bool = False
    link: str | None = None


@dataclass
class Walk:
    """Entries in sorted order, and what was left out although no pattern asked for it."""

    entries: list[Entry] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def walk(folder: Path) -> Walk:
    """Never leaves ``folder`` and never opens anything but folders; links are looked at, not followed."""
    root = Path(os.path.realpath(folder))
    result = Walk()
    links: list[Entry] = []
    ignore = Ignore.of_folder(root)
    for entry in _entries(root, "", ignore, result):
        (result.entries if entry.link is None else links).append(entry)
    sent = {entry.path for entry in result.entries} | {""}
    for entry in links:
        target = os.path.normpath(os.path.join(os.path.dirname(entry.path), entry.link or ""))
        if ("" if target == "." else target) in sent:
            result.entries.append(entry)
        else:
            result.skipped.append(f"{entry.path}: a link to {target}, which is not sent")
    result.entries.sort(key=lambda each: each.path.split("/"))
    result.skipped.sort()
    return result


def _entries(root: Path, prefix: str, ignore: Ignore, result: Walk) -> Iterator[Entry]:
    pending = [prefix]
    while pending:
        above = pending.pop()
        try:
            with os.scandir(root / above) as scan:
                children = sorted(scan, key=lambda each: each.name)
        except OSError as error:
            result.skipped.append(f"{above}/: {error.strerror}")
            continue
        for child in children:
            path = f"{above}/{child.name}" if above else child.name
            if not _is_utf8(path):
                result.skipped.append(f"{path!a}: the name is not UTF-8")
                continue
            is_folder = child.is_dir(follow_symlinks=False)
            if ignore.excludes(path, is_folder=is_folder):
                continue
            entry = _entry(root, path, child, is_folder, result)
            if entry is None:
                continue
            yield entry
            if is_folder:
                pending.append(path)


def _entry(root: Path, path: str, child: "os.DirEntry[str]", is_folder: bool, result: Walk) -> Entry | None:
    source = root / path
    try:
        facts = child.stat(follow_symlinks=False)
    except OSError as error:
        result.skipped.append(f"{path}: {error.strerror}")
        return None
    mode, mtime = stat.S_IMODE(facts.st_mode) & 0o777, int(facts.st_mtime)
    if is_folder:
        return Entry(path, source, mode, 0, is_folder=True)
    if child.is_symlink():
        return _link(root, path, source, result)
    if not stat.S_ISREG(facts.st_mode):
        result.skipped.append(
            f"{path}: neither a file nor a folder ({_KINDS.get(stat.S_IFMT(facts.st_mode), 'special')})"
        )
        return None
    if not os.access(source, os.R_OK):
        result.skipped.append(f"{path}: Permission denied")
        return None
    return Entry(path, source, mode, mtime, facts.st_size)


_KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


def _link(root: Path, path: str, source: Path, result: Walk) -> Entry | None:
    target = os.path.realpath(source)
    if target != str(root) and not target.startswith(f"{root}{os.sep}".replace("//", "/")):
        result.skipped.append(f"{path}: a link that leaves the folder")
        return None
    if not os.path.lexists(target) or os.path.islink(target):
        result.skipped.append(f"{path}: a link to nothing")
        return None
    # Chains and absolute targets become one relative step, so that the link means the same wherever it is unpacked.
    return Entry(path, source, 0o777, 0, link=os.path.relpath(target, source.parent))


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
