"""Parses frames of output into log lines; separates rank prefix and level from the text."""

import re
import time
from collections.abc import Callable

from determined.link.messages import OutputLine
from determined_agent.output.log_segments import AGENT, STDERR, Chunk, Frame

_RANK = re.compile(r"\[rank=(\d{1,9})\] ?")
_LEVEL = re.compile(r"(TRACE|DEBUG|INFO|WARNING|ERROR|CRITICAL): ?")


def parse(frame: Frame, mask: Callable[[str], str] = str) -> OutputLine:
    """Returns the line of a frame. Undecodable bytes and NUL, which databases refuse, become U+FFFD.

    ``mask``: replaces what others must not read.
    """
    text = mask(frame.line.decode("utf-8", "replace").replace("\0", "\ufffd"))
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


def lines_of(chunk: Chunk, mask: Callable[[str], str] = str) -> list[OutputLine]:
    """Returns the lines of a chunk; the first ones say how many bytes before them were dropped or skipped.

    ``mask``: replaces what others must not read.
    """
    gaps = (
        (chunk.missing, "dropped here: the agent's buffer for unsent output was full"),
        (chunk.unreadable, "skipped here: the task or a damaged disk has changed the files of its output"),
    )
    when = chunk.frames[0].time if chunk.frames else time.time()
    before = [
        OutputLine(timestamp=when, log=f"{count} bytes of output were {why}", level="WARNING", source="agent")
        for count, why in gaps
        if count
    ]
    return [*before, *(parse(frame, mask) for frame in chunk.frames)]
