"""Lists the files of a checkpoint's folder, and what cannot be part of a checkpoint."""

import logging
import os
import stat
from pathlib import Path
from typing import NamedTuple

from determined.storage.base import HASHES_FILE

logger = logging.getLogger(__name__)

_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
MAX_NAMED = 20


class Listing(NamedTuple):
    """``sizes``: relative path → size; folders end with ``/`` and have size 0. ``left_out``: relative path → kind.
    Only the kind of a file is looked at: opening a pipe would wait for ever."""

    sizes: dict[str, int]
    left_out: dict[str, str]


def listing(folder: Path) -> Listing:
    """Lists everything below ``folder`` but our own list of hashes."""
    result = Listing({}, {})

    def leave_out(error: OSError) -> None:
        shown = Path(str(error.filename)).relative_to(folder).as_posix()
        result.left_out[shown] = f"unreadable ({error.strerror})"

    for base, folders, files in os.walk(folder, onerror=leave_out):
        for name in folders:
            path = Path(base) / name
            shown = path.relative_to(folder).as_posix()
            if path.is_symlink():
                result.left_out[shown] = "a link to a folder"
            else:
                result.sizes[f"{shown}/"] = 0
        for name in files:
            path = Path(base) / name
            if name != HASHES_FILE:
                _add(result, path, path.relative_to(folder).as_posix())
    return result


def _add(result: Listing, path: Path, shown: str) -> None:
    try:
        facts = path.stat()
    except OSError as error:
        result.left_out[shown] = "a broken link" if path.is_symlink() else f"unreadable ({error.strerror})"
        return
    if stat.S_ISREG(facts.st_mode):
        result.sizes[shown] = facts.st_size
    else:
        result.left_out[shown] = _KINDS.get(stat.S_IFMT(facts.st_mode), "no file")


def tree(folder: Path) -> dict[str, int]:
    """Returns relative path → size of what can be stored below ``folder``."""
    return listing(folder).sizes


def warn_of_left_out(folder: Path) -> None:
    """Logs what below ``folder`` is no part of the checkpoint that is stored from it."""
    left_out = sorted(listing(folder).left_out.items())
    for name, kind in left_out[:MAX_NAMED]:
        logger.warning("left out of the checkpoint: %s is %s", name, kind)
    if len(left_out) > MAX_NAMED:
        logger.warning("left out of the checkpoint: %d more", len(left_out) - MAX_NAMED)


def remove_special(folder: Path) -> None:
    """Removes pipes, sockets and devices below ``folder``; links stay."""
    for name, kind in listing(folder).left_out.items():
        path = folder / name
        if kind in _KINDS.values() and not path.is_symlink():
            path.unlink(missing_ok=True)
