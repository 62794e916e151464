"""Finds the files of ``outputs`` that can be kept, stores them as a checkpoint, and restores them.

Links are not stored as files but named in the checkpoint's metadata, and only those that lead to another output.
"""

import json
import os
import posixpath
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from determined.errors import StorageError
from determined.storage.base import HASHES_FILE, METADATA_FILE, Storage
from determined.storage.directory import MIN_FREE_BYTES, DirectoryStorage, copy

MAX_FILES = 99_999
"""Maximum of files, folders and links. The master takes one more name, that of the metadata, in a checkpoint."""
MAX_PATH_BYTES = 4096
MAX_NAMED = 20
_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}


@dataclass(frozen=True)
class FileFacts:
    """Facts about a file that differ once it has been written."""

    size: int
    modified: int
    changed: int
    is_executable: bool


@dataclass
class OutputFiles:
    """Everything below the folders of ``outputs``, by its path below the work folder.

    ``left_out`` says what an entry is that cannot be kept.
    """

    files: dict[str, FileFacts] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files.values())

    def described_left_out(self) -> Iterator[str]:
        """Yields one sentence for each entry that is not kept, up to a number of them."""
        named = sorted(self.left_out.items())
        yield from (f"{name} is {kind}" for name, kind in named[:MAX_NAMED])
        if len(named) > MAX_NAMED:
            yield f"{len(named) - MAX_NAMED} more entries"


class TooManyFiles(StorageError):
    """The outputs have more files than a checkpoint may have."""


def find(root: Path, outputs: Sequence[str], most: int = MAX_FILES) -> OutputFiles:
    """Returns what lies below the folders of ``outputs``; a folder that does not exist has nothing.

    Args:
        root: the work folder.
        outputs: folders, or single files, as paths relative to ``root``.
        most: maximum number of entries, with the folders that lead to ``outputs``.

    Raises:
        TooManyFiles: there are more.
    """
    found = _Search(root, outputs, most)
    for name in outputs:
        real = os.path.realpath(root / name)
        if real != os.path.join(os.path.realpath(root), name):
            found.result.left_out[name] = f"a link to {real}; name that folder itself if it is in the work folder"
        elif os.path.lexists(root / name):
            found.look(name)
    return found.result


class _Search:
    def __init__(self, root: Path, outputs: Sequence[str], most: int) -> None:
        self.result = OutputFiles()
        self._root = root
        self._most = most
        self._count = len({folder for name in outputs for folder in _with_parents(name)})
        self._inside = [os.path.join(os.path.realpath(root), name) for name in outputs]

    def look(self, top: str) -> None:
        """Adds an entry and everything below it. Links are read and never followed."""
        waiting = [top]
        while waiting:
            name = waiting.pop()
            path = self._root / name
            try:
                facts = path.lstat()
                if not self._is_listed(name, facts) or not stat.S_ISDIR(facts.st_mode):
                    continue
                with os.scandir(path) as entries:
                    for entry in entries:
                        self._count += 1
                        if self._count > self._most:
                            raise TooManyFiles(f"there are more than {self._most:,} files and folders in {top}")
                        waiting.append(f"{name}/{entry.name}")
            except OSError as error:
                self.result.left_out[_printable(name)] = f"unreadable ({error.strerror})"

    def _is_listed(self, name: str, facts: os.stat_result) -> bool:
        kind = stat.S_IFMT(facts.st_mode)
        if why := _bad_name(name):
            self.result.left_out[_printable(name)] = why
        elif kind == stat.S_IFLNK:
            self._add_link(name)
        elif kind not in (stat.S_IFREG, stat.S_IFDIR):
            self.result.left_out[name] = _KINDS.get(kind, "no file")
        elif not os.access(self._root / name, os.R_OK if kind == stat.S_IFREG else os.R_OK | os.X_OK):
            self.result.left_out[name] = "unreadable (Permission denied)"
        elif kind == stat.S_IFREG:
            is_executable = bool(facts.st_mode & stat.S_IXUSR)
            self.result.files[name] = FileFacts(facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, is_executable)
            return True
        else:
            self.result.folders.add(name)
            return True
        return False

    def _add_link(self, name: str) -> None:
        path = self._root / name
        text, real = os.readlink(path), os.path.realpath(path)
        if not any(real == folder or real.startswith(f"{folder}/") for folder in self._inside):
            self.result.left_out[name] = f"a link to {text}, which is not in the outputs"
        elif _is_plain(text):
            self.result.links[name] = text
        else:
            self.result.links[name] = os.path.relpath(real, os.path.realpath(path.parent))


def _with_parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def store(storage: Storage, root: Path, found: OutputFiles, uuid: str, metadata: Mapping[str, Any]) -> None:
    """Stores outputs as a checkpoint, completely or not at all. Does not wait for space.

    Raises:
        StorageError: the storage failed or has too little space.
    """
    if isinstance(storage, DirectoryStorage):
        free = storage.free_bytes()
        if free is not None and free < found.size + MIN_FREE_BYTES:
            raise StorageError(f"they have {found.size:,} bytes, and the checkpoint storage has {free:,} bytes free")
    values = {
        **metadata,
        "links": found.links,
        "executables": [name for name, facts in found.files.items() if facts.is_executable],
    }

    def finish(folder: Path) -> None:
        (folder / METADATA_FILE).write_text(json.dumps(values, indent=1, sort_keys=True), encoding="utf-8")

    with storage.store_path(uuid, finish) as target:
        for name in sorted(found.folders):
            (target / name).mkdir(parents=True, exist_ok=True)
        for name in sorted(found.files):
            copy(root / name, target / name)


def restore(storage: Storage, uuid: str, root: Path) -> None:
    """Puts stored outputs into the work folder; other files there stay.

    Raises:
        StorageError: the checkpoint cannot be read, or a link is where a file would be written.
    """
    names = [name for name in storage.resources(uuid) if name != METADATA_FILE]
    refuse_links(root, (name.rstrip("/") for name in names))
    for name in names:
        if (root / name.rstrip("/")).is_symlink():
            raise StorageError(f"{name} is a link in the work folder, through which no output is written; remove it")
    storage.download(uuid, root, lambda name: name != METADATA_FILE)
    complete(root, storage.read(uuid, METADATA_FILE))


def refuse_links(root: Path, names: Iterable[str]) -> None:
    """Raises StorageError if a file with one of these names would be written through a link to another folder."""
    safe = {""}
    for parent in map(posixpath.dirname, names):
        if parent not in safe and os.path.realpath(root / parent) != os.path.join(os.path.realpath(root), parent):
            raise StorageError(f"{parent} is a link, through which no output is written; remove the link")
        safe.add(parent)


def complete(root: Path, content: bytes) -> None:
    """Makes the links, and marks the executable files, that the metadata of stored outputs name.

    Ignores what leads out of ``root`` or is no text: the metadata may come from somebody else. What exists already
    stays.

    Raises:
        StorageError: the metadata cannot be read.
    """
    try:
        values = json.loads(content)
        links, executables = dict(values.get("links", {})), list(values.get("executables", []))
        links = {name: target for name, target in links.items() if _is_text(name) and _is_text(target)}
    except (ValueError, TypeError, AttributeError):
        raise StorageError(f"the {METADATA_FILE} of the outputs cannot be read") from None
    for name in filter(_is_text, executables):
        path = root / name
        if _is_inside(name) and path.is_file() and not path.is_symlink():
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
    for name, target in links.items():
        path = root / name
        end = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
        if _is_inside(name) and _is_plain(target) and _is_inside(end) and not os.path.lexists(path):
            refuse_links(root, [name])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.symlink_to(target)


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and b"\0" not in value.encode()
    except UnicodeEncodeError:
        return False


def _is_inside(name: str) -> bool:
    """Returns True for a normalized relative path that stays below the folder it is relative to."""
    return name == posixpath.normpath(name) and not name.startswith(("/", "../")) and name not in ("", ".", "..")


def _is_plain(target: str) -> bool:
    """Returns True if a link's text is relative and goes up only at its beginning, so that no other link changes it."""
    return bool(target) and not target.startswith("/") and posixpath.normpath(target) == target.rstrip("/")


def _bad_name(name: str) -> str:
    base = posixpath.basename(name)
    if base == HASHES_FILE:
        return "a name that the storage needs for itself"
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        return "a name that is not UTF-8"
    return "" if length < MAX_PATH_BYTES else f"a path of more than {MAX_PATH_BYTES} bytes"


def _printable(name: str) -> str:
    return name.encode("utf-8", "replace").decode()[:200]
