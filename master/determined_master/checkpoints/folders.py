"""A checkpoint's folder as the master sees it: where it is, whether the master may touch it, its files, its removal.

The master reads and deletes only below roots that the admin sets. A user's configuration names any path, so it is
resolved first, and then opened part by part from the root down without following a link.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from determined.errors import NotFound, StorageError
from determined.storage.base import HASHES_FILE, METADATA_FILE, checkpoint_folder
from determined_master.checkpoints.archive import FolderEntry
from determined_master.errors import OutOfReach

TYPES = ("shared_fs", "directory")
"""Types of ``checkpoint_storage`` that are folders."""
REMOVED_SUFFIX = ".deleted"
MAX_DEPTH = 64
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NO_LINK = _OPEN_FOLDER | os.O_NOFOLLOW


def folder_of(storage: Mapping[str, Any], uuid: str) -> Path:
    """Returns the path that a ``checkpoint_storage`` section gives to a checkpoint, without accessing any file. Raises
    OutOfReach for storage that is not a file system and for an id that is not a UUID."""
    try:
        return checkpoint_folder(storage_folder(storage), uuid)
    except StorageError as error:
        raise OutOfReach(error.message) from error


def open_folder(storage: Mapping[str, Any], uuid: str, roots: Sequence[Path]) -> int:
    """Returns a descriptor of a checkpoint's folder, to be closed by the caller. Blocking.

    Raises OutOfReach where the master may not read, NotFound where the files are gone.
    """
    try:
        with _opened_parent(folder_of(storage, uuid), roots) as parent:
            return _open_below(parent, uuid)
    except FileNotFoundError:
        raise NotFound(f"the files of checkpoint {uuid} are missing") from None


def entries(storage: Mapping[str, Any], uuid: str, roots: Sequence[Path]) -> Iterator[FolderEntry]:
    """Yields the regular files and folders of a checkpoint by name, each folder before its content, without our list of
    hashes. Blocking.

    Raises OutOfReach where the master may not read, NotFound where the files are gone.
    """
    folder = open_folder(storage, uuid, roots)
    try:
        yield from (entry for entry in entries_below(folder) if entry.name != HASHES_FILE)
    finally:
        os.close(folder)


def refuse_out_of_reach(storage: Mapping[str, Any], uuid: str, roots: Sequence[Path]) -> None:
    """Raises OutOfReach where the master may not delete this checkpoint's folder. Blocking."""
    try:
        with _opened_parent(folder_of(storage, uuid), roots) as parent:
            _refuse_foreign(parent, uuid)
    except FileNotFoundError:
        return


def refuse_root_out_of_reach(storage: Mapping[str, Any], roots: Sequence[Path]) -> None:
    """Raises OutOfReach where the master may delete no checkpoint of this storage. Blocking."""
    try:
        with _opened_parent(storage_folder(storage) / "*", roots):
            return
    except FileNotFoundError:
        return


def remove(storage: Mapping[str, Any], uuid: str, roots: Sequence[Path]) -> str | None:
    """Removes a checkpoint's folder. Returns None once it is gone, otherwise why the master leaves it. Blocking.

    The folder is renamed first, so that half a checkpoint is never seen under its id; a later call finds what a failed
    one left. Raises OSError if the files cannot be removed.
    """
    try:
        with _opened_parent(folder_of(storage, uuid), roots) as parent:
            renamed = uuid + REMOVED_SUFFIX
            _remove_tree(parent, renamed)
            _refuse_foreign(parent, uuid)
            os.rename(uuid, renamed, src_dir_fd=parent, dst_dir_fd=parent)
            _remove_tree(parent, renamed)
    except OutOfReach as error:
        return error.message
    except FileNotFoundError:
        return None
    return None


def storage_folder(storage: Mapping[str, Any]) -> Path:
    """Returns the folder that a ``checkpoint_storage`` section names. Raises OutOfReach if it names none."""
    kind = storage.get("type")
    if kind == "shared_fs":
        below = storage.get("storage_path") or storage.get("checkpoint_path") or ""
        folder = os.path.join(str(storage["host_path"]), str(below))
    elif kind == "directory":
        folder = str(storage["container_path"])
    else:
        raise OutOfReach(f"this master cannot access checkpoints in {kind} storage")
    if "\0" in folder:
        raise OutOfReach(f"checkpoint_storage has an invalid path: {folder!r}")
    return Path(folder)


@contextmanager
def _opened_parent(folder: Path, roots: Sequence[Path]) -> Iterator[int]:
    """Opens the folder that holds the checkpoint's. Raises OutOfReach if it is below no root."""
    real = Path(os.path.realpath(folder.parent))
    for root in roots:
        base = Path(os.path.realpath(root))
        if real.is_relative_to(base):
            break
    else:
        raise OutOfReach(
            f"{folder} is outside the folders in which this master reads and deletes checkpoints; "
            "an admin can allow its parent folder by the master's setting checkpoint_roots"
        )
    opened = os.open(base, _OPEN_FOLDER)
    try:
        for part in real.relative_to(base).parts:
            below = _open_below(opened, part)
            os.close(opened)
            opened = below
        yield opened
    finally:
        os.close(opened)


def entries_below(folder: int, prefix: str = "", depth: int = 0) -> Iterator[FolderEntry]:
    """Yields the regular files and folders below an open folder.

    Every one is opened relative to the folder that holds it, without following a link: a checkpoint is written by user
    code, which may put links, pipes and devices there.
    """
    if depth > MAX_DEPTH:
        raise OSError(f"folders are nested too deeply to be archived: {prefix[:80]}…")
    for name in sorted(os.listdir(folder)):
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            continue
        number = os.open(name, _OPEN, dir_fd=folder)
        facts = os.fstat(number)
        if stat.S_ISDIR(facts.st_mode):
            try:
                yield FolderEntry(prefix + name, 0, facts.st_mode, facts.st_mtime, None)
                yield from entries_below(number, f"{prefix}{name}/", depth + 1)
            finally:
                os.close(number)
        else:
            with os.fdopen(number, "rb", buffering=0) as file:
                # The open file decides: the path may have been replaced since.
                if stat.S_ISREG(facts.st_mode):
                    yield FolderEntry(prefix + name, facts.st_size, facts.st_mode, facts.st_mtime, file)


def _open_below(parent: int, name: str) -> int:
    try:
        return os.open(name, _NO_LINK, dir_fd=parent)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG):
            raise OutOfReach(f"{name[:80]!r} in the path of a checkpoint is a link or a file, not a folder") from error
        raise


def _refuse_foreign(parent: int, uuid: str) -> None:
    """Raises OutOfReach for a folder that holds neither of the files that a checkpoint is completed with.

    Our library writes both, the official one writes the metadata only.
    """
    folder = _open_below(parent, uuid)
    try:
        if not any(_is_regular(folder, name) for name in (METADATA_FILE, HASHES_FILE)):
            raise OutOfReach(
                f"the folder {uuid} holds no {METADATA_FILE}, so it may not be a checkpoint; it was not deleted"
            )
    finally:
        os.close(folder)


def _is_regular(folder: int, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _remove_tree(parent: int, name: str) -> None:
    """Removes a folder and what is in it. It is no error if it does not exist.

    Folders are moved up before they are emptied, so that no depth of nesting exhausts the stack or the descriptors.
    """
    try:
        top = os.open(name, _NO_LINK, dir_fd=parent)
    except FileNotFoundError:
        return
    try:
        while names := os.listdir(top):
            for each in names:
                _remove_entry(top, each)
    finally:
        os.close(top)
    os.rmdir(name, dir_fd=parent)


def _remove_entry(top: int, name: str) -> None:
    if not _is_folder(top, name):
        os.unlink(name, dir_fd=top)
        return
    folder = os.open(name, _NO_LINK, dir_fd=top)
    try:
        for each in os.listdir(folder):
            if _is_folder(folder, each):
                os.rename(each, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)
            else:
                os.unlink(each, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _is_folder(parent: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
