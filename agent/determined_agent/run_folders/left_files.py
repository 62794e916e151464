"""Files that a task left in its working folder, which is removed with the run: its log names them."""

import heapq
import json
import os
import stat
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from determined.link.run_folder import RunFolder
from determined_launch.regular_files import read_regular

MAX_ENTRIES = 10_000
MAX_DEPTH = 50
MAX_SECONDS = 0.2
"""The slots of the task are free only after this look, as its line belongs before the end of the log."""
MAX_NAMED = 5
MAX_KEPT_BYTES = 1 << 16
MAX_NAME_CHARACTERS = 120
IGNORED = frozenset({"__pycache__", ".git", ".cache"})


@dataclass
class LeftFiles:
    """What is new below a working folder. ``is_partial``: there is more than was looked at."""

    count: int = 0
    size: int = 0
    largest: list[tuple[int, str]] = field(default_factory=list)
    is_partial: bool = False

    def add(self, name: str, size: int) -> None:
        self.count += 1
        self.size += size
        entry = (size, name)
        (heapq.heappush if len(self.largest) < MAX_NAMED else heapq.heappushpop)(self.largest, entry)

    def text(self) -> str:
        """Returns a line of the log; empty if nothing is new."""
        if not self.count:
            return ""
        named = [f"{_printable(name)} ({amount(size)})" for size, name in sorted(self.largest, reverse=True)]
        rest = self.count - len(named)
        more = f" and {'more than ' if self.is_partial else ''}{rest} more" if rest or self.is_partial else ""
        files = "1 file" if self.count == 1 else f"{self.count} files"
        return (
            f"removed with the working folder: {files} that the task left there, {amount(self.size)}: "
            f"{', '.join(named)}{more}. Name the folder of what you need in outputs, or write it into a checkpoint "
            "(core_context.checkpoint.store_path) or below a folder of bind_mounts"
        )


def kept_outputs(folder: RunFolder) -> frozenset[str]:
    """Returns the folders that a task has kept before it ended. Blocking."""
    try:
        names = json.loads(read_regular(folder.outputs, MAX_KEPT_BYTES, owner=folder.owner))
        return frozenset(map(str, names))
    except (OSError, ValueError, TypeError, RecursionError):
        return frozenset()


def find_left(workdir: Path, since: float, kept: Collection[str] = ()) -> LeftFiles:
    """Returns the regular files below a folder that were made or changed after ``since``, a time of its file system,
    and are not below the folders ``kept``. Blocking, within bounds; follows no link."""
    left = LeftFiles()
    until = time.monotonic() + MAX_SECONDS
    folders, entries = [(str(workdir), "", 0)], 0
    while folders:
        path, shown, depth = folders.pop()
        try:
            with os.scandir(path) as listing:
                for entry in listing:
                    entries += 1
                    if entries > MAX_ENTRIES or time.monotonic() > until:
                        left.is_partial = True
                        return left
                    facts = entry.stat(follow_symlinks=False)
                    name = f"{shown}{entry.name}"
                    if name in kept:
                        continue
                    if stat.S_ISDIR(facts.st_mode):
                        if entry.name not in IGNORED and depth < MAX_DEPTH:
                            folders.append((entry.path, f"{name}/", depth + 1))
                    elif stat.S_ISREG(facts.st_mode) and facts.st_ctime > since:
                        left.add(name, facts.st_size)
        except OSError:
            continue
    return left


def amount(size: int) -> str:
    """Returns a number of bytes for people.

    >>> amount(12), amount(2048), amount(3_500_000)
    ('12 B', '2.0 KB', '3.5 MB')
    """
    if size < 1000:
        return f"{size} B"
    value = float(size)
    for unit in ("KB", "MB", "GB"):
        value /= 1000
        if value < 1000:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def _printable(name: str) -> str:
    shown = "".join(each if each.isprintable() else "?" for each in name)
    return shown if len(shown) <= MAX_NAME_CHARACTERS else f"{shown[:MAX_NAME_CHARACTERS]}…"
