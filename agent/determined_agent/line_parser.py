"""Parses frames of output into log lines; takes rank prefix and level out of the text."""

import re

from determined.link.messages import OutputLine
from determined_agent.log_segments import AGENT, STDERR, Chunk, Frame

_RANK = re.compile(r"\[rank=(\d{1,9})\] ?")
_LEVEL = re.compile(r"(TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL): ?")


def parse(frame: Frame) -> OutputLine:
    """One line. An unreadable byte becomes U+FFFD, and a NUL, which no database takes, too."""
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
    """The lines of a chunk, after one that says what was cut away before it."""
    lines = [parse(frame) for frame in chunk.frames]
    if chunk.missing:
        gap = OutputLine(
            timestamp=chunk.frames[0].time if chunk.frames else 0.0,
            log=f"{chunk.missing} bytes of output are missing here: more was written than the agent may keep unsent",
            level="WARNING",
            source="agent",
        )
        lines.insert(0, gap)
    return lines
