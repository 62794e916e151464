"""Lists the files, folders and links of a folder, without those that are ignored or cannot be sent.

A link to something that is sent stays a link. A link that leaves the folder is followed, so that its target is sent in
its place, if both belong to one git repository or if ``follow_links`` is set; otherwise it is an error.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from determined.context.ignore import Ignore
from determined.context.links import LeavingLink, Region, is_in_same_repository, refuse, repository_of
from determined.errors import ContextError

MAX_ENTRIES = 500_000


@dataclass(frozen=True)
class WalkEntry:
    """An entry to send. ``path`` is relative to the walked folder; ``link`` is the target of an inner link.

    ``stamp`` tells whether a file changed: its times of change and of modification in nanoseconds, inode and device.
    """

    path: str
    source: Path
    mode: int
    mtime: int
    size: int = 0
    is_folder: bool = False
    link: str | None = None
    stamp: tuple[int, ...] = ()

    @property
    def changed_ns(self) -> int:
        """Returns when a file was last changed, in nanoseconds; 0 for folders and links, which have no content."""
        return max(self.stamp[:2], default=0)


def stamp_of(facts: os.stat_result) -> tuple[int, ...]:
    return (facts.st_ctime_ns, facts.st_mtime_ns, facts.st_ino, facts.st_dev)


@dataclass
class Walk:
    """The entries in sorted order, the entries omitted without a pattern, and the followed links."""

    entries: list[WalkEntry] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    followed: list[str] = field(default_factory=list)


def walk(folder: Path, *, follow_links: bool = False, exclude: Sequence[str] = ()) -> Walk:
    """Walks ``folder`` and the targets of links that are followed, without what the patterns ``exclude`` match.

    Raises ContextError for links that point out of the folder and are not followed, with their targets.
    """
    return _Walker(Path(os.path.realpath(folder)), follow_links, exclude).walk()


class _Walker:
    def __init__(self, root: Path, follow_links: bool, exclude: Sequence[str]) -> None:
        self._root = root
        self._follow = follow_links
        self._repository = repository_of(str(root))
        self._ignore = Ignore.of_folder(root, exclude)
        self._links: list[WalkEntry] = []
        self._leaving: list[LeavingLink] = []
        self._result = Walk()

    def walk(self) -> Walk:
        result = self._result
        for entry in self._entries():
            (result.entries if entry.link is None else self._links).append(entry)
            if len(result.entries) + len(self._links) > MAX_ENTRIES:
                raise ContextError(
                    f"{self._root} holds more than {MAX_ENTRIES:,} files, including those of followed links"
                )
        refuse(sorted(self._leaving, key=lambda each: each.path), self._root)
        sent = {entry.path for entry in result.entries} | {""}
        for entry in self._links:
            target = os.path.normpath(os.path.join(os.path.dirname(entry.path), entry.link or ""))
            if ("" if target == "." else target) in sent:
                result.entries.append(entry)
            else:
                result.skipped.append(f"{entry.path}: a link to {target}, which is not sent")
        result.entries.sort(key=lambda each: each.path.split("/"))
        result.skipped.sort()
        result.followed.sort()
        return result

    def _entries(self) -> Iterator[WalkEntry]:
        """Yields entries.

        Each folder comes with its enclosing regions, innermost last; a followed folder is a region.
        """
        regions: tuple[Region, ...] = (Region(str(self._root), ""),)
        pending: list[tuple[str, Path, tuple[Region, ...]]] = [("", self._root, regions)]
        while pending:
            above, real, regions = pending.pop()
            try:
                with os.scandir(real) as scan:
                    children = sorted(scan, key=lambda each: each.name)
            except OSError as error:
                self._result.skipped.append(f"{above}/: {error.strerror}")
                continue
            for child in children:
                path = f"{above}/{child.name}" if above else child.name
                if not _is_utf8(path):
                    self._result.skipped.append(f"{path!a}: the name is not UTF-8")
                    continue
                if self._is_left_out(path, child, regions[-1]):
                    continue
                entry, region = self._entry(path, child, regions)
                if entry is None:
                    continue
                yield entry
                if entry.is_folder:
                    pending.append((path, entry.source, regions if region is None else (*regions, region)))

    def _is_left_out(self, path: str, child: "os.DirEntry[str]", region: Region) -> bool:
        is_folder = child.is_dir(follow_symlinks=False)
        leads_to_folder = child.is_symlink() and os.path.isdir(child.path)
        # a pattern for a folder, "data/", also leaves out a link that would become a folder
        if any(self._ignore.excludes(path, is_folder=each) for each in {is_folder, is_folder or leads_to_folder}):
            return True
        if region.is_hidden_left_out and child.name.startswith("."):
            self._result.skipped.append(f"{path}: hidden, behind a link; --follow-links sends it")
            return True
        return False

    def _entry(
        self, path: str, child: "os.DirEntry[str]", regions: tuple[Region, ...]
    ) -> tuple[WalkEntry | None, Region | None]:
        """Returns the entry, and the region that it begins if it is a followed link to a folder."""
        if child.is_symlink():
            return self._link(path, child.path, regions)
        try:
            facts = child.stat(follow_symlinks=False)
        except OSError as error:
            self._result.skipped.append(f"{path}: {error.strerror}")
            return None, None
        return self._plain(path, Path(child.path), facts), None

    def _plain(self, path: str, source: Path, facts: os.stat_result) -> WalkEntry | None:
        mode, mtime = stat.S_IMODE(facts.st_mode) & 0o777, int(facts.st_mtime)
        if stat.S_ISDIR(facts.st_mode):
            return WalkEntry(path, source, mode, 0, is_folder=True)
        if not stat.S_ISREG(facts.st_mode):
            kind = _KINDS.get(stat.S_IFMT(facts.st_mode), "special")
            self._result.skipped.append(f"{path}: neither a file nor a folder ({kind})")
            return None
        if not os.access(source, os.R_OK):
            self._result.skipped.append(f"{path}: Permission denied")
            return None
        return WalkEntry(path, source, mode, mtime, facts.st_size, stamp=stamp_of(facts))

    def _link(self, path: str, source: str, regions: tuple[Region, ...]) -> tuple[WalkEntry | None, Region | None]:
        target = os.path.realpath(source)
        try:
            facts = os.lstat(target)
        except OSError:
            facts = None
        if facts is None or stat.S_ISLNK(facts.st_mode):
            self._result.skipped.append(f"{path}: a broken link")
            return None, None
        # the innermost region first: a loop inside a followed folder stays inside its copy
        for region in reversed(regions):
            inner = region.inside(target)
            if inner is not None:
                # chains and absolute targets become one relative link, which is valid wherever it is unpacked
                link = os.path.relpath(inner or ".", os.path.dirname(path) or ".")
                return WalkEntry(path, Path(source), 0o777, 0, link=link), None
        is_near = is_in_same_repository(target, self._repository)
        if not is_near and not self._follow:
            self._leaving.append(LeavingLink(path, target))
            return None, None
        entry = self._plain(path, Path(target), facts)
        if entry is not None:
            self._result.followed.append(f"{path} -> {target}")
        is_hidden_left_out = not self._follow
        return entry, Region(target, path, is_hidden_left_out) if entry is not None and entry.is_folder else None


_KINDS = {stat.S_IFIFO: "pipe", stat.S_IFSOCK: "socket", stat.S_IFCHR: "device", stat.S_IFBLK: "device"}


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
