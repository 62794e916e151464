"""Parsing of output lines: rank, level, stream and source."""

import pytest

from determined_agent.output.line_parser import lines_of, parse
from determined_agent.output.log_segments import AGENT, STDERR, STDOUT, Chunk, Frame


@pytest.mark.parametrize(
    ("line", "rank", "level", "text"),
    [
        (b"plain", None, "", "plain"),
        (b"[rank=12] x", 12, "", "x"),
        (b"[rank=0] ERROR: x: y", 0, "ERROR", "x: y"),
        (b"INFO:root:hello", None, "INFO", "root:hello"),
        (b"WARNING: ", None, "WARNING", ""),
        (b"INFORMAL: x", None, "", "INFORMAL: x"),
        (b" [rank=1] x", None, "", " [rank=1] x"),
        (b"[rank=x] y", None, "", "[rank=x] y"),
        (b"\xff\0ok", None, "", "\ufffd\ufffdok"),
    ],
)
def test_rank_and_level_prefixes_are_parsed_and_removed(line: bytes, rank: int | None, level: str, text: str) -> None:
    parsed = parse(Frame(1.5, STDOUT, line))
    assert (parsed.rank_id, parsed.level, parsed.log, parsed.timestamp) == (rank, level, text, 1.5)


def test_a_line_has_its_stream_and_its_source() -> None:
    error, agent_line = parse(Frame(0, STDERR, b"")), parse(Frame(0, AGENT, b""))
    assert (error.stdtype, error.source) == ("stderr", "task")
    assert (agent_line.stdtype, agent_line.source) == ("stdout", "agent")


def test_missing_bytes_are_reported_in_a_warning_line() -> None:
    first, second = lines_of(Chunk(0, 120, (Frame(2.0, STDOUT, b"after"),), missing=100))
    assert "100 bytes" in first.log
    assert (first.source, first.level, second.log) == ("agent", "WARNING", "after")
