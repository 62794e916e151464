"""Unpacks a context below a folder and nowhere else."""

import gzip
import io
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import zstandard

from determined.context.path_safety import BoundedHeader, MemberLimit, check_link, forget_members
from determined.errors import ContextError

MAX_UNPACKED = 1 << 29
"""Five times what a context may hold unless the master's settings say otherwise; a decompression bomb exceeds it."""
_CHUNK = 1 << 20


def unpack(data_or_path: bytes | Path, target: Path, *, limit: int = MAX_UNPACKED) -> str:
    """Unpacks a context below ``target``, which is created if necessary, and returns the archive's comment.

    Links are created after all files, so that nothing is written through a link. Raises ContextError for a member
    outside of the target, a device, or more than ``limit`` bytes; files that were written before stay.
    """
    try:
        return _unpack(data_or_path, target, limit)
    except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError, OverflowError) as error:  # the last: its times
        raise ContextError(f"cannot read the context: {error}") from None
    except OSError as error:
        raise ContextError(f"cannot unpack the context to {target}: {error}") from error


def to_tgz(data: bytes, *, limit: int = MAX_UNPACKED) -> bytes:
    """Returns the same tar compressed with gzip, for clients without zstd. Equal for equal contexts."""
    buffer = io.BytesIO()
    try:
        with gzip.GzipFile(filename="", fileobj=buffer, mode="wb", compresslevel=6, mtime=0) as out:
            for chunk in _chunks(_tar_stream(data), limit):
                out.write(chunk)
    except zstandard.ZstdError as error:
        raise ContextError(f"cannot read the context: {error}") from None
    return buffer.getvalue()


def check_archive(file: IO[bytes], limit: int) -> None:
    """Raises ContextError if the archive has more than ``limit`` bytes, or members that ``unpack`` refuses.

    Writes nothing and keeps no more than a piece in memory. Does not report a file that is no archive.
    """
    try:
        for _chunk in _chunks(zstandard.ZstdDecompressor().stream_reader(file, closefd=False), limit):
            pass
        file.seek(0)
        _check_members(zstandard.ZstdDecompressor().stream_reader(file, closefd=False))
    except (zstandard.ZstdError, tarfile.ReadError, EOFError):
        return
    except ValueError as error:
        raise ContextError(f"cannot read the context: {error}") from None


def _check_members(reader: IO[bytes]) -> None:
    members = MemberLimit()
    with tarfile.open(fileobj=reader, mode="r|", tarinfo=BoundedHeader) as tar:
        for header in tar:
            forget_members(tar)
            name = members.take(header.name)
            if header.issym():
                check_link(name, header.linkname)
            elif not header.isdir() and not (header.isreg() and name):
                raise _unknown_kind(name)


def _unknown_kind(name: str) -> ContextError:
    return ContextError(f"the context holds {name!r}, which is not a file, folder or link")


def _unpack(data_or_path: bytes | Path, target: Path, limit: int) -> str:
    target.mkdir(parents=True, exist_ok=True)
    root = Path(os.path.realpath(target))
    links: dict[str, str] = {}
    folders: list[tuple[Path, int, float]] = []
    left, members = limit, MemberLimit()
    with open(data_or_path, "rb") if isinstance(data_or_path, Path) else io.BytesIO(data_or_path) as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file)
        with tarfile.open(fileobj=reader, mode="r|", tarinfo=BoundedHeader) as tar:
            for header in tar:
                forget_members(tar)
                name = members.take(header.name)
                _filter(header, root)
                if header.isdir():
                    folders.append((_folder(root, name), header.mode, header.mtime))
                elif header.issym():
                    check_link(name, header.linkname)
                    links[name] = header.linkname
                elif header.isreg() and name:
                    content = tar.extractfile(header)
                    assert content is not None
                    left = _file(root, name, header, content, left)
                else:
                    raise _unknown_kind(name)
            comment = str(tar.pax_headers.get("comment", ""))
    for name, link in links.items():
        _link(root, name, link)
    for folder, mode, mtime in reversed(folders):
        if folder != root:
            os.chmod(folder, mode & 0o777 | stat.S_IRWXU)
            os.utime(folder, (mtime, mtime))
    return comment


def _filter(header: tarfile.TarInfo, root: Path) -> None:
    """Refuses what the standard library's filter for data refuses; see docs/decisions/0011-unpacking.md.

    Python has it since 3.11.4 and 3.10.12. Before, the other checks of this module stand alone.
    """
    if not hasattr(tarfile, "data_filter"):
        return
    try:
        tarfile.data_filter(header, str(root))
    except tarfile.FilterError as error:
        raise ContextError(f"the context has an entry that cannot be unpacked: {error}") from None


def _folder(root: Path, name: str) -> Path:
    """Creates a folder and its parents; each must be a real folder and not a link."""
    at = root
    for part in name.split("/") if name else ():
        at = at / part
        try:
            at.mkdir()
        except FileExistsError:
            if not stat.S_ISDIR(at.lstat().st_mode):
                raise ContextError(f"the context holds {name!r} below something that is not a folder") from None
    return at


def _file(root: Path, name: str, header: tarfile.TarInfo, content: IO[bytes], left: int) -> int:
    above, _, last = name.rpartition("/")
    path = _folder(root, above) / last
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    mode = header.mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR
    with os.fdopen(os.open(path, flags, mode), "wb") as out:
        while chunk := content.read(_CHUNK):
            left -= len(chunk)
            if left < 0:
                raise ContextError("the unpacked context is larger than the limit")
            out.write(chunk)
    os.chmod(path, mode)
    os.utime(path, (header.mtime, header.mtime))
    return left


def _link(root: Path, name: str, link: str) -> None:
    above, _, last = name.rpartition("/")
    path = _folder(root, above) / last
    os.symlink(link, path)
    # The path is inside lexically, but another link could lead it outside.
    if not Path(os.path.realpath(path)).is_relative_to(root):
        path.unlink()
        raise ContextError(f"the context has a link that points out of its folder: {name!r} to {link[:200]!r}")


def _tar_stream(data: bytes) -> IO[bytes]:
    reader: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data))
    return reader


def _chunks(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    left = limit
    while chunk := stream.read(_CHUNK):
        left -= len(chunk)
        if left < 0:
            raise ContextError("the unpacked context is larger than the limit")
        yield chunk
