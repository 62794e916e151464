"""The line splitter: bytes to lines."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from determined_agent.output.line_splitter import LineSplitter


@given(data=st.text(alphabet="ab\n", max_size=80), cuts=st.lists(st.integers(0, 80)))
def test_the_line_splitter_gives_the_same_lines_for_any_division_of_the_bytes(data: str, cuts: list[int]) -> None:
    splitter, lines = LineSplitter(), []
    cut_positions = sorted({0, *cuts, len(data)})
    for start, end in itertools.pairwise(cut_positions):
        lines += splitter.feed(data[start:end].encode(), 0.0)
    lines += splitter.finish()
    expected = data.encode().split(b"\n")
    assert lines == (expected if expected[-1] else expected[:-1])


def test_a_carriage_return_before_a_newline_belongs_to_the_line_end() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"a\r", 0.0) == []
    assert splitter.feed(b"\nb\r\r\n", 0.0) == [b"a", b"b"]


def test_a_progress_bar_gives_at_most_one_line_a_second_and_its_last_state() -> None:
    splitter, lines = LineSplitter(), []
    for hundredth in range(500):
        lines += splitter.feed(b"\r%d" % hundredth, hundredth / 100)
        lines += splitter.due(hundredth / 100)
    assert 5 <= len(lines) <= 6
    assert splitter.feed(b"\r100%\n", 5.0)[-1] == b"100%"


def test_a_progress_bar_that_pauses_gives_its_newest_state() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"1\r2\r3\r4", 0.0) == [b"1"]
    assert splitter.deadline == 1.0
    assert splitter.due(0.5) == []
    assert splitter.due(1.0) == [b"3"]
    assert splitter.deadline is None
    assert splitter.finish() == [b"4"]


@given(size=st.integers(0, 5000), step=st.integers(1, 999))
def test_a_long_line_keeps_head_and_tail_and_counts_the_cut_bytes(size: int, step: int) -> None:
    data = bytes(97 + number % 26 for number in range(size))
    splitter, lines = LineSplitter(limit=1000), []
    for start in range(0, size, step):
        lines += splitter.feed(data[start : start + step], 0.0)
    lines += splitter.feed(b"\n", 0.0)
    [line] = lines
    if size <= 1128:
        assert line == data
    else:
        assert line == data[:500] + b" ... [%d bytes cut here] ... " % (size - 1000) + data[-500:]
