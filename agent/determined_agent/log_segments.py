"""Container output on disk: framed lines in segment files, each named by the offset of its first byte.

Imports only quickly loading modules of the standard library: the shim writes with it, the agent reads with it. There
is one writer at a time (the agent before the shim starts and after it has ended), so the meaning of an offset never
changes.
"""

import errno
import os
import stat
import struct
import time
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from determined_launch.out_of_space import is_out_of_space

STDOUT, STDERR, AGENT = 1, 2, 3
_HEADER = struct.Struct(">dBI")
_SUFFIX = ".seg"
# A task in a container of its own user could put a link there.
_NEW = os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


StrPath = str | os.PathLike[str]


class Frame(NamedTuple):
    """One line of output: time, stream and bytes."""

    time: float
    stream: int
    line: bytes


class Chunk(NamedTuple):
    """Frames from ``start`` to ``end``; ``missing`` bytes before the first frame were dropped."""

    start: int
    end: int
    frames: tuple[Frame, ...] = ()
    missing: int = 0


class SegmentWriter:
    """Appends lines. If ``limit`` bytes wait for the agent, the segments in the middle are dropped.

    On a full disk lines stay in memory until there is space: ``is_blocked`` is True, and the next flush retries.
    """

    def __init__(self, folder: StrPath, *, segment_bytes: int = 16 << 20, limit: int = 1 << 30) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._limit = limit
        self._pending: list[bytes] = []
        self.is_blocked = False
        segments = list(_segments(folder))
        self._start = segments[-1][0] if segments else 0
        self._file = os.open(_path(folder, self._start), os.O_RDWR | _NEW, 0o600)
        _check_own(self._file)
        # A killed shim may have left a partial frame.
        self._size = _whole(self._file)
        os.ftruncate(self._file, self._size)

    @property
    def end(self) -> int:
        return self._start + self._size

    def add(self, stream: int, line: bytes, when: float | None = None) -> None:
        self._pending.append(_HEADER.pack(time.time() if when is None else when, stream, len(line)) + line)

    def flush(self) -> None:
        """Writes the added lines.

        Spreads a burst over segments, so that dropping the middle keeps the newest lines.
        """
        pending, self._pending = self._pending, []
        self.is_blocked = False
        batch: list[bytes] = []
        size = self._size
        for frame in pending:
            batch.append(frame)
            size += len(frame)
            if size >= self._segment_bytes:
                self._append(batch)
                if not self.is_blocked:
                    self._rotate()
                batch, size = [], self._size
        self._append(batch)

    def _append(self, batch: list[bytes]) -> None:
        """Writes the batch completely or not at all. Keeps it if the disk is full; drops it after any other error."""
        if self.is_blocked:
            self._pending += batch
            return
        data = b"".join(batch)
        try:
            done = 0
            while done < len(data):
                done += os.write(self._file, memoryview(data)[done:])
            self._size += done
        except OSError as error:
            os.ftruncate(self._file, self._size)
            if is_out_of_space(error):
                self.is_blocked = True
                self._pending += batch

    def close(self) -> None:
        self.flush()
        os.close(self._file)

    def _rotate(self) -> None:
        start = self.end
        try:
            file = os.open(_path(self._folder, start), os.O_WRONLY | _NEW, 0o600)
        except OSError:
            return  # continues in the old segment
        os.close(self._file)
        self._file, self._start, self._size = file, start, 0
        self._cut()

    def _cut(self) -> None:
        segments = list(_segments(self._folder))
        total = sum(size for _, size in segments)
        kept = 0
        for index, (start, size) in enumerate(segments):
            if total <= self._limit:
                return
            kept += size
            is_head = index == 0 or kept <= self._limit // 2
            if is_head or start == self._start:
                continue
            _remove(_path(self._folder, start))
            total -= size


def read(folder: StrPath, position: int, *, lines: int = 1000, size: int = 1 << 20) -> Chunk:
    """Returns frames from ``position`` on, at most ``lines`` of them and about ``size`` bytes, of one segment."""
    here = position
    segments = list(_segments(folder))
    for index, (start, length) in enumerate(segments):
        is_last = index == len(segments) - 1
        if here >= start + length and not (is_last and here == start + length):
            continue
        here = max(here, start)
        frames, end = _frames(_path(folder, start), here - start, lines, size)
        if frames or is_last:
            return Chunk(position, start + end, frames, here - position)
        here = start + length  # a crash leaves a partial frame before a later segment
    return Chunk(position, position)


def end_of(folder: StrPath) -> int:
    """Returns the offset after the last complete frame."""
    segments = list(_segments(folder))
    if not segments:
        return 0
    with _open(_path(folder, segments[-1][0])) as file:
        return segments[-1][0] + _whole(file.fileno())


def drop(folder: StrPath, position: int) -> None:
    """Removes segments that end at or before ``position``, except the newest, which defines the end of the stream."""
    for start, size in list(_segments(folder))[:-1]:
        if start + size <= position:
            _remove(_path(folder, start))


def _frames(path: StrPath, skip: int, lines: int, size: int) -> tuple[tuple[Frame, ...], int]:
    try:
        with _open(path) as file:
            file.seek(skip)
            data = file.read(size)
            if len(data) >= _HEADER.size:
                needed = _HEADER.size + _HEADER.unpack_from(data)[2]
                if needed > len(data):
                    data += file.read(needed - len(data))
    except FileNotFoundError:  # dropped after the listing
        return (), skip
    frames: list[Frame] = []
    at = 0
    while len(frames) < lines and at + _HEADER.size <= len(data):
        when, stream, length = _HEADER.unpack_from(data, at)
        after = at + _HEADER.size + length
        if after > len(data):
            break
        frames.append(Frame(when, stream, data[at + _HEADER.size : after]))
        at = after
    return tuple(frames), skip + at


def _open(path: StrPath) -> BinaryIO:
    """Opens a file for reading without waiting for a writer, because a task may have put a fifo there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return open(descriptor, "rb")


def _check_own(file: int) -> None:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(file)
        raise OSError(errno.EINVAL, "a segment is not a regular file of its own")


def _whole(file: int) -> int:
    at, size = 0, os.fstat(file).st_size
    while at + _HEADER.size <= size:
        after = at + _HEADER.size + _HEADER.unpack(os.pread(file, _HEADER.size, at))[2]
        if after > size:
            break
        at = after
    return int(at)


def _segments(folder: StrPath) -> Iterator[tuple[int, int]]:
    """Yields start and size of every segment, in order."""
    for name in sorted(os.listdir(folder)):
        if name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdecimal() and name.isascii():
            try:
                yield int(name.removesuffix(_SUFFIX)), os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                continue


def _path(folder: StrPath, start: int) -> str:
    return os.path.join(folder, f"{start:020d}{_SUFFIX}")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
