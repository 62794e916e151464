"""The framed output stream on disk: writing, reading, dropping and damaged segments."""

import math
import os
import struct
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined_agent.output import log_segments
from determined_agent.output.log_segments import STDERR, STDOUT, SegmentWriter


def read_all(folder: Path, position: int = 0, lines: int = 1000) -> list[bytes]:
    lines_read: list[bytes] = []
    while (chunk := log_segments.read(folder, position, lines=lines)).end != position:
        assert chunk.start == position
        lines_read += [frame.line for frame in chunk.frames]
        position = chunk.end
    return lines_read


def end_of(folder: Path) -> int:
    position = 0
    while (chunk := log_segments.read(folder, position)).end != position:
        position = chunk.end
    return position


def make_written(folder: Path, count: int, **options: int) -> SegmentWriter:
    writer = SegmentWriter(folder, **options)
    for number in range(count):
        writer.add(STDOUT, str(number).encode(), float(number))
        writer.flush()
    return writer


def test_a_frame_has_its_time_its_stream_and_its_line(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path)
    writer.add(STDOUT, b"one", 1.25)
    writer.add(STDERR, b"", 2.5)
    writer.close()
    frames = log_segments.read(tmp_path, 0).frames
    assert [(f.time, f.stream, f.line) for f in frames] == [(1.25, STDOUT, b"one"), (2.5, STDERR, b"")]


@given(lines=st.lists(st.binary(max_size=40), max_size=60), at_a_time=st.integers(1, 7), size=st.integers(20, 200))
def test_every_line_is_read_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], at_a_time: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("segments")
    writer = SegmentWriter(folder, segment_bytes=size)
    for line in lines:
        writer.add(STDOUT, line, 0.0)
        writer.flush()
    writer.close()
    assert read_all(folder, lines=at_a_time) == lines
    assert end_of(folder) == sum(13 + len(line) for line in lines)


def test_a_line_larger_than_the_read_size_is_read_whole(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path)
    writer.add(STDOUT, b"x" * 5000, 0.0)
    writer.close()
    assert len(log_segments.read(tmp_path, 0, size=100).frames[0].line) == 5000


def test_half_a_frame_is_not_read_and_the_next_writer_removes_it(tmp_path: Path) -> None:
    make_written(tmp_path, 3).close()
    [path] = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(b"\0" * 12)
    assert read_all(tmp_path) == [b"0", b"1", b"2"]
    writer = SegmentWriter(tmp_path)
    writer.add(STDOUT, b"after", 0.0)
    writer.close()
    assert read_all(tmp_path) == [b"0", b"1", b"2", b"after"]


def test_dropping_acknowledged_segments_does_not_change_offsets(tmp_path: Path) -> None:
    make_written(tmp_path, 100, segment_bytes=100).close()
    before = end_of(tmp_path)
    position = log_segments.read(tmp_path, 0, lines=50).end
    while len(rest := read_all(tmp_path, position)) > 40:
        position = log_segments.read(tmp_path, position, lines=1).end
    log_segments.drop(tmp_path, position)
    assert read_all(tmp_path, position) == rest
    assert end_of(tmp_path) == before
    log_segments.drop(tmp_path, before)
    assert len(list(tmp_path.iterdir())) == 1
    assert end_of(tmp_path) == before


def test_beyond_the_limit_the_middle_is_dropped_and_its_size_is_reported(tmp_path: Path) -> None:
    make_written(tmp_path, 1000, segment_bytes=100, limit=2000).close()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2300
    position, missing, lines = 0, 0, 0
    while (chunk := log_segments.read(tmp_path, position)).end != position:
        missing += chunk.missing
        lines += len(chunk.frames)
        position = chunk.end
    assert missing > 0
    assert lines < 300
    assert read_all(tmp_path)[0] == b"0"
    assert read_all(tmp_path)[-1] == b"999"


def test_a_burst_beyond_the_limit_keeps_its_newest_lines(tmp_path):
    writer = SegmentWriter(tmp_path, segment_bytes=1 << 12, limit=1 << 16)
    for number in range(30000):
        writer.add(STDOUT, b"%d" % number)
    writer.close()
    lines, position = [], 0
    while (chunk := log_segments.read(tmp_path, position)).frames:
        lines += [frame.line for frame in chunk.frames]
        position = chunk.end
    assert lines[0] == b"0"
    assert lines[-1] == b"29999"
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= (1 << 16) + (1 << 13)


def frame(length: int, *, stream: int = STDOUT, when: float = 1.0, line: bytes = b"") -> bytes:
    return struct.pack(">dBI", when, stream, length) + line


@pytest.mark.parametrize(
    "bad",
    [frame(0, stream=0), frame(0xFFFF_FFFF), frame(0, when=math.nan), frame(0, when=-1.0), frame(1, stream=9)],
    ids=["zeros", "length of 4 GiB", "no time", "negative time", "no such stream"],
)
def test_a_sparse_segment_without_a_frame_is_skipped_and_counted(tmp_path: Path, bad: bytes) -> None:
    segment, size = tmp_path / f"{0:020d}.seg", 3 << 30
    segment.write_bytes(bad)
    os.truncate(segment, size)
    tracemalloc.start()
    chunk = log_segments.read(tmp_path, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (chunk.end, chunk.frames, chunk.missing, chunk.unreadable) == (size, (), 0, size)
    assert peak < 8 << 20


def test_frames_before_and_after_damaged_bytes_are_read(tmp_path: Path) -> None:
    (tmp_path / f"{0:020d}.seg").write_bytes(frame(3, line=b"one") + b"\0" * 100)
    (tmp_path / f"{116:020d}.seg").write_bytes(frame(3, line=b"two"))
    chunks = []
    position = 0
    while (chunk := log_segments.read(tmp_path, position)).end != position:
        chunks.append((chunk.unreadable, [frame.line for frame in chunk.frames]))
        position = chunk.end
    assert chunks == [(0, [b"one"]), (100, [b"two"])]


def test_a_folder_with_too_many_files_is_not_read(tmp_path: Path) -> None:
    for number in range(log_segments.MAX_ENTRIES + 1):
        (tmp_path / f"{number:020d}.seg").touch()
    with pytest.raises(OSError, match="more than 16384 files"):
        log_segments.read(tmp_path, 0)


def test_one_read_skips_a_bounded_number_of_segments_without_frames(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"{number:020d}.seg").write_bytes(b"\0")
    assert log_segments.read(tmp_path, 0).end == log_segments.MAX_PASSED


def test_a_segment_of_another_owner_is_skipped(tmp_path: Path) -> None:
    segment = tmp_path / f"{0:020d}.seg"
    segment.write_bytes(frame(3, line=b"one"))
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(segment, 4711, 4711)
    assert log_segments.read(tmp_path, 0, owner=4712).unreadable == 16
    assert log_segments.read(tmp_path, 0, owner=4711).frames[0].line == b"one"


@pytest.mark.parametrize("is_link", [True, False])
def test_a_file_that_a_task_prepared_is_not_used_as_the_next_segment(tmp_path: Path, is_link: bool) -> None:
    folder, victim = tmp_path / "output", tmp_path / "victim"
    folder.mkdir()
    victim.write_bytes(b"of another")
    writer = make_written(folder, 1, segment_bytes=40)
    prepared = folder / f"{3 * writer.end:020d}.seg"
    if is_link:
        prepared.hardlink_to(victim)
    else:
        prepared.write_bytes(b"of the task")
    for number in range(1, 20):
        writer.add(STDOUT, str(number % 10).encode(), float(number))
        writer.flush()
    writer.close()
    assert prepared.read_bytes() == (b"of another" if is_link else b"of the task")
    assert read_all(folder) == [str(number % 10).encode() for number in range(20)]
    assert len(list(folder.iterdir())) > 3, "later segments have other names"


def test_a_folder_replaced_by_a_link_is_neither_read_nor_written(tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "output"
    other.mkdir()
    link.symlink_to(other)
    for use in (lambda: log_segments.read(link, 0), lambda: SegmentWriter(link), lambda: log_segments.drop(link, 9)):
        with pytest.raises(OSError):
            use()
    assert list(other.iterdir()) == []


def test_a_writer_begins_a_new_segment_after_one_that_is_too_large_to_resume(tmp_path: Path) -> None:
    size = log_segments.MAX_RESUMED_BYTES + 1
    segment = tmp_path / f"{0:020d}.seg"
    segment.write_bytes(frame(3, line=b"one"))
    os.truncate(segment, size)
    writer = SegmentWriter(tmp_path)
    writer.add(STDOUT, b"after", 1.0)
    writer.close()
    assert (tmp_path / f"{size:020d}.seg").stat().st_size == 18
    assert read_all(tmp_path) == [b"one", b"after"]
