"""Container output on disk: framed lines in segment files, each named by the offset of its first byte.

Imports only quickly loading modules of the standard library: the shim writes with it, the agent reads with it. There
is one writer at a time (the agent before the shim starts and after it has ended), so the meaning of an offset never
changes. A task in a container can write into the folder: what is read is bounded, and bytes that no writer has written
are skipped.
"""

import errno
import itertools
import os
import re
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from determined_launch.out_of_space import is_out_of_space

STDOUT, STDERR, AGENT = 1, 2, 3
MAX_FRAME_BYTES = 2 << 20
"""Longer than every line; the agent's setting ``output_line_bytes`` is at most half of it."""
MAX_ENTRIES = 16384
"""A folder with more files is not read; writers make at most half as many segments."""
MAX_RESUMED_BYTES = 32 << 20
"""A writer does not continue a larger segment, because it looks for the end of the last whole frame."""
MAX_PASSED = 64
"""Number of segments without a frame that one read passes over."""
_MAX_OFFSET = 1 << 60
_MAX_TIME = 1e11
_BLOCK_BYTES = 1 << 20
_HEADER = struct.Struct(">dBI")
_SUFFIX = ".seg"
_DIGITS = 20
_SEGMENT = re.compile(rf"[0-9]{{{_DIGITS}}}\.seg")
# A task in a container of its own user could put a link there.
_NEW = os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


StrPath = str | os.PathLike[str]


class Frame(NamedTuple):
    """One line of output: time, stream and bytes."""

    time: float
    stream: int
    line: bytes


class Chunk(NamedTuple):
    """Frames from ``start`` to ``end``. Before the first frame, ``missing`` bytes were dropped, and ``unreadable``
    bytes are no frames."""

    start: int
    end: int
    frames: tuple[Frame, ...] = ()
    missing: int = 0
    unreadable: int = 0


class Segment(NamedTuple):
    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


class SegmentWriter:
    """Appends lines. If ``limit`` bytes wait for the agent, the segments in the middle are dropped.

    On a full disk lines stay in memory until there is space: ``is_blocked`` is True, and the next flush retries.
    """

    def __init__(self, folder: StrPath, *, segment_bytes: int = 16 << 20, limit: int = 1 << 30) -> None:
        self._segment_bytes = segment_bytes
        self._limit = limit
        self._pending: list[bytes] = []
        self.is_blocked = False
        self._folder = _open_folder(folder)
        try:
            self._open_last()
        except BaseException:
            os.close(self._folder)
            raise

    def _open_last(self) -> None:
        segments = _segments(self._folder)
        last = segments[-1] if segments else Segment(0, 0)
        self._start = last.start if last.size <= MAX_RESUMED_BYTES else last.end
        self._file = os.open(_name(self._start), os.O_RDWR | _NEW, 0o600, dir_fd=self._folder)
        _check_own(self._file)
        # A killed shim may have left a partial frame.
        self._size = _whole(self._file)
        os.ftruncate(self._file, self._size)

    @property
    def end(self) -> int:
        return self._start + self._size

    def add(self, stream: int, line: bytes, when: float | None = None) -> None:
        line = line[:MAX_FRAME_BYTES]
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
        os.close(self._folder)

    def _rotate(self) -> None:
        start = self.end
        try:
            # A file that exists is the task's, perhaps a link to one of another folder.
            file = os.open(_name(start), os.O_WRONLY | os.O_EXCL | _NEW, 0o600, dir_fd=self._folder)
        except OSError:
            return  # continues in the old segment
        os.close(self._file)
        self._file, self._start, self._size = file, start, 0
        self._cut()

    def _cut(self) -> None:
        try:
            segments = _segments(self._folder)
        except OSError:
            return  # the task has filled the folder; its own output is lost, and nothing else
        total = sum(size for _, size in segments)
        kept = 0
        for index, (start, size) in enumerate(segments):
            if total <= self._limit:
                return
            kept += size
            is_head = index == 0 or kept <= self._limit // 2
            if is_head or start == self._start:
                continue
            _remove(self._folder, start)
            total -= size


def read(
    folder: StrPath, position: int, *, lines: int = 1000, size: int = _BLOCK_BYTES, owner: int | None = None
) -> Chunk:
    """Returns frames from ``position`` on, of one segment.

    Args:
        folder: the folder of the segments.
        position: offset of the first wanted byte.
        lines: largest number of frames.
        size: about so many bytes are read; a single frame may have more, up to ``MAX_FRAME_BYTES``.
        owner: uid that a segment must have, unless it is this process's own; None for any.

    Raises OSError for a folder with more than ``MAX_ENTRIES`` files, and for a segment that cannot be read.
    """
    here, unreadable, passed = position, 0, 0
    with _opened(folder) as base:
        segments = _segments(base)
        for index, segment in enumerate(segments):
            is_last = index == len(segments) - 1
            if here >= segment.end and not (is_last and here == segment.end):
                continue
            here = max(here, segment.start)
            frames, skipped = _frames(base, segment, here - segment.start, lines, size, owner)
            if frames:
                before = here - position - unreadable
                return Chunk(position, here + sum(map(_length, frames)), frames, before, unreadable)
            if is_last:
                unreadable += skipped
                return Chunk(position, here + skipped, (), here - position - (unreadable - skipped), unreadable)
            # A crash leaves a partial frame before a later segment.
            passed += 1
            unreadable += skipped
            here = segment.end
            if passed == MAX_PASSED:
                break
    return Chunk(position, here, (), max(0, here - position - unreadable), unreadable)


def tail(folder: StrPath, size: int) -> int:
    """Returns the start of the first segment from which at most ``size`` bytes follow, or of the last segment."""
    with _opened(folder) as base:
        segments = _segments(base)
    if not segments:
        return 0
    end = segments[-1].end
    return next((each.start for each in segments if end - each.start <= size), segments[-1].start)


def drop(folder: StrPath, position: int) -> None:
    """Removes segments that end at or before ``position``, except the newest, which defines the end of the stream."""
    with _opened(folder) as base:
        for segment in _segments(base)[:-1]:
            if segment.end <= position:
                _remove(base, segment.start)


def _frames(
    base: int, segment: Segment, skip: int, lines: int, size: int, owner: int | None
) -> tuple[tuple[Frame, ...], int]:
    """Returns whole frames, and the bytes to pass over if the segment has no frame at this place."""
    try:
        file = os.open(_name(segment.start), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=base)
    except FileNotFoundError:  # dropped after the listing
        return (), 0
    try:
        if owner is not None and os.fstat(file).st_uid not in (owner, os.geteuid()):
            return (), segment.size - skip
        data = os.pread(file, size, skip)
        if len(data) >= _HEADER.size:
            when, stream, length = _HEADER.unpack_from(data)
            if not _is_header(when, stream, length):
                return (), segment.size - skip
            needed = _HEADER.size + length
            if needed > len(data):
                data += os.pread(file, needed - len(data), skip + len(data))
    finally:
        os.close(file)
    found = itertools.islice(_parse(data), lines)
    return tuple(Frame(when, stream, data[begin:end]) for when, stream, begin, end in found), 0


def _parse(data: bytes) -> Iterator[tuple[float, int, int, int]]:
    """Yields time, stream, begin and end of the line of each whole frame, up to the first bytes that are none."""
    at = 0
    while at + _HEADER.size <= len(data):
        when, stream, length = _HEADER.unpack_from(data, at)
        begin = at + _HEADER.size
        at = begin + length
        if at > len(data) or not _is_header(when, stream, length):
            return
        yield when, stream, begin, at


def _is_header(when: float, stream: int, length: int) -> bool:
    return STDOUT <= stream <= AGENT and length <= MAX_FRAME_BYTES and 0 <= when < _MAX_TIME


def _length(frame: Frame) -> int:
    return _HEADER.size + len(frame.line)


def _whole(file: int) -> int:
    """Returns the number of bytes of the whole frames with which the file begins."""
    at = 0
    while True:
        data = os.pread(file, MAX_FRAME_BYTES + _HEADER.size, at)
        used = max((end for *_, end in _parse(data)), default=0)
        if used == 0:
            return at
        at += used


@contextmanager
def _opened(folder: StrPath) -> Iterator[int]:
    base = _open_folder(folder)
    try:
        yield base
    finally:
        os.close(base)


def _open_folder(folder: StrPath) -> int:
    # A task that may change the folder above could put a link there.
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _check_own(file: int) -> None:
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
        os.close(file)
        raise OSError(errno.EINVAL, "a segment is not a regular file of its own")


def _segments(base: int) -> list[Segment]:
    """Returns the segments in order. Raises OSError for too many files, and for one that is no regular file."""
    segments = []
    with os.scandir(base) as entries:
        for count, entry in enumerate(entries):
            if count == MAX_ENTRIES:
                raise OSError(errno.EFBIG, f"more than {MAX_ENTRIES} files among the output")
            if not _SEGMENT.fullmatch(entry.name):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if not stat.S_ISREG(status.st_mode):
                raise OSError(errno.EINVAL, "not a regular file", entry.name)
            segment = Segment(int(entry.name.removesuffix(_SUFFIX)), status.st_size)
            if segment.end <= _MAX_OFFSET:
                segments.append(segment)
    return sorted(segments)


def _name(start: int) -> str:
    return f"{start:0{_DIGITS}d}{_SUFFIX}"


def _remove(base: int, start: int) -> None:
    try:
        os.unlink(_name(start), dir_fd=base)
    except FileNotFoundError:
        pass
