"""The framed stream on disk."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined_agent import log_segments
from determined_agent.log_segments import STDERR, STDOUT, SegmentWriter


def read_all(folder: Path, position: int = 0, lines: int = 1000) -> list[bytes]:
    found: list[bytes] = []
    while (chunk := log_segments.read(folder, position, lines=lines)).end != position:
        assert chunk.start == position
        found += [frame.line for frame in chunk.frames]
        position = chunk.end
    return found


def make_written(folder: Path, count: int, **options: int) -> SegmentWriter:
    writer = SegmentWriter(folder, **options)
    for number in range(count):
        writer.add(STDOUT, str(number).encode(), float(number))
        writer.flush()
    return writer


def test_times_and_streams_are_kept(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path)
    writer.add(STDOUT, b"one", 1.25)
    writer.add(STDERR, b"", 2.5)
    writer.close()
    frames = log_segments.read(tmp_path, 0).frames
    assert [(f.time, f.stream, f.line) for f in frames] == [(1.25, STDOUT, b"one"), (2.5, STDERR, b"")]


@given(lines=st.lists(st.binary(max_size=40), max_size=60), at_a_time=st.integers(1, 7), size=st.integers(20, 200))
def test_every_line_comes_back_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], at_a_time: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("segments")
    writer = SegmentWriter(folder, segment_bytes=size)
    for line in lines:
        writer.add(STDOUT, line, 0.0)
        writer.flush()
    writer.close()
    assert read_all(folder, lines=at_a_time) == lines
    assert log_segments.end_of(folder) == sum(13 + len(line) for line in lines)


def test_a_line_larger_than_the_read_comes_whole(tmp_path: Path) -> None:
    writer = SegmentWriter(tmp_path)
    writer.add(STDOUT, b"x" * 5000, 0.0)
    writer.close()
    assert len(log_segments.read(tmp_path, 0, size=100).frames[0].line) == 5000


def test_half_a_frame_is_not_read_and_the_next_writer_takes_it_away(tmp_path: Path) -> None:
    make_written(tmp_path, 3).close()
    [path] = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(b"\0" * 12)
    assert read_all(tmp_path) == [b"0", b"1", b"2"]
    writer = SegmentWriter(tmp_path)
    writer.add(STDOUT, b"after", 0.0)
    writer.close()
    assert read_all(tmp_path) == [b"0", b"1", b"2", b"after"]


def test_acknowledged_segments_go_and_offsets_stay(tmp_path: Path) -> None:
    make_written(tmp_path, 100, segment_bytes=100).close()
    before = log_segments.end_of(tmp_path)
    position = log_segments.read(tmp_path, 0, lines=50).end
    while len(rest := read_all(tmp_path, position)) > 40:
        position = log_segments.read(tmp_path, position, lines=1).end
    log_segments.drop(tmp_path, position)
    assert read_all(tmp_path, position) == rest
    assert log_segments.end_of(tmp_path) == before
    log_segments.drop(tmp_path, before)
    assert len(list(tmp_path.iterdir())) == 1
    assert log_segments.end_of(tmp_path) == before


def test_beyond_the_limit_the_middle_goes_and_the_reader_hears_how_much(tmp_path: Path) -> None:
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
