"""Parses frames of output into log lines; separates rank prefix and level from the text."""

import re

from determined.link.messages import OutputLine
from determined_agent.log_segments import AGENT, STDERR, Chunk, Frame

_RANK = re.compile(r"\[rank=(\d{1,9})\] ?")
_LEVEL = re.compile(r"(TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL): ?")


def parse(frame: Frame) -> OutputLine:
    """Returns the line of a frame. Undecodable bytes and NUL, which databases refuse, become U+FFFD."""
    text = frame.line.decode("utf-8", "replace").replace("\0", "\ufffd")
    rank: int | None = None
    level = ""
    if found := _RANK.match(text):
        rank, text = int(found[1]), text[found.end() :]
    if found := _LEVEL.match(text):
        level, text = found[1], text[found.end() :]
    return OutputLine(
        timestamp=frame.time,
        log=text,
        level=level,
        rank_id=rank,
        stdtype="stderr" if frame.stream == STDERR else "stdout",
        source="agent" if frame.stream == AGENT else "task",
    )


def lines_of(chunk: Chunk) -> list[OutputLine]:
    """Returns the lines of a chunk; a first line says how many bytes before it were dropped."""
    lines = [parse(frame) for frame in chunk.frames]
    if chunk.missing:
        gap = OutputLine(
            timestamp=chunk.frames[0].time if chunk.frames else 0.0,
            log=f"{chunk.missing} bytes of output were dropped here: the agent's buffer for unsent output was full",
            level="WARNING",
            source="agent",
        )
        lines.insert(0, gap)
    return lines
