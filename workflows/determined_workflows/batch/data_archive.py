"""Packs the data of a job, once per content: a tar file on the scratch disk, named by the hash of what is in it."""

import errno
import hashlib
import json
import os
import stat
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from determined.errors import ConfigError
from determined_workflows.batch import disk_use
from determined_workflows.batch.project import Project

INDEX = "contents.json"
MAX_INDEX_ENTRIES = 200
MAX_DRAFT_SECONDS = 24 * 3600
"""A draft that grew within this time may be that of another submission, on another machine."""
_PIECE = 1 << 20


@dataclass(frozen=True)
class Archive:
    """Packed data. ``paths``: what it has at its top, as typed."""

    archive: str
    digest: str
    paths: tuple[str, ...]

    def as_record(self) -> dict[str, Any]:
        return asdict(self)


def check(project: Project, typed: Sequence[str]) -> tuple[str, ...]:
    """Returns the paths relative to the project's scratch folder. Raises ConfigError for one that is not there."""
    relative_paths = []
    for path in typed:
        relative = os.path.relpath(path, project.scratch_dir) if os.path.isabs(path) else os.path.normpath(path)
        if relative in (".", "..") or relative.startswith("../"):
            raise ConfigError(f"--data {path}: paths are below {project.scratch_dir}, and relative to it")
        if not (project.scratch_dir / relative).exists():
            raise ConfigError(f"--data {path}: there is no {project.scratch_dir / relative}; nothing was submitted")
        relative_paths.append(relative)
    return tuple(
        each
        for each in dict.fromkeys(relative_paths)
        if not any(each.startswith(f"{other}/") for other in relative_paths)
    )


def pack(project: Project, paths: Sequence[str], say: Callable[[str], None]) -> Archive:
    """Packs the data unless the same content is packed already. Raises ConfigError if the disk has no room."""
    sources = [(path, project.scratch_dir / path) for path in paths]
    folder = project.archives
    try:
        folder.mkdir(parents=True, exist_ok=True)
        index = _read_index(folder)
        state = _hash(_states(sources))
        digest = index.get(state) or _hash(_contents(sources))
        target = folder / f"{digest[:32]}.tar"
        if not target.exists():
            say(f"Packing {', '.join(paths)}")
            _remove_drafts(folder)
            _write(target, sources)
            disk_use.announce("packed data", [path.stat().st_size for path in folder.glob("*.tar")], folder, say)
        _write_index(folder, {**index, state: digest})
    except OSError as error:
        reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
        raise ConfigError(f"--data: {error.filename or folder}: {reason}; nothing was submitted") from None
    return Archive(str(target), digest, tuple(paths))


def _remove_drafts(folder: Path) -> None:
    """Removes what submissions that were killed have left half packed."""
    for draft in folder.glob(".*.tar.new-*"):
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > MAX_DRAFT_SECONDS:
                draft.unlink()


def _write(target: Path, sources: Sequence[tuple[str, Path]]) -> None:
    draft = target.with_name(f".{target.name}.new-{os.getpid()}")
    try:
        with tarfile.open(draft, "w") as archive:
            for path, source in sources:
                # What is typed may be a link to the data.
                archive.add(source.resolve(), arcname=path)
        draft.replace(target)
    finally:
        with suppress(FileNotFoundError):
            draft.unlink()


def _files(sources: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, Path, os.stat_result]]:
    """Yields name, path and state of each file, folder and link, in a fixed order."""
    for name, source in sources:
        top = source.resolve()
        yield name, top, top.lstat()
        for base, folders, files in os.walk(top):
            folders.sort()
            for entry in sorted([*folders, *files]):
                path = Path(base, entry)
                yield f"{name}/{path.relative_to(top)}", path, path.lstat()


def _states(sources: Sequence[tuple[str, Path]]) -> Iterator[bytes]:
    for name, _, status in _files(sources):
        size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
        yield f"{name}\0{status.st_mode}\0{size}\0{status.st_mtime_ns}\0{status.st_ino}\n".encode()


def _contents(sources: Sequence[tuple[str, Path]]) -> Iterator[bytes]:
    for name, path, status in _files(sources):
        yield f"{name}\0{status.st_mode}\n".encode()
        if stat.S_ISLNK(status.st_mode):
            yield os.readlink(path).encode()
        elif stat.S_ISREG(status.st_mode):
            yield f"{status.st_size}\n".encode()
            with path.open("rb") as file:
                while piece := file.read(_PIECE):
                    yield piece


def _hash(pieces: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _read_index(folder: Path) -> dict[str, str]:
    try:
        found = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_index(folder: Path, index: dict[str, str]) -> None:
    kept = dict(list(index.items())[-MAX_INDEX_ENTRIES:])
    draft = folder / f".{INDEX}.new-{os.getpid()}"
    draft.write_text(json.dumps(kept), encoding="utf-8")
    draft.replace(folder / INDEX)
