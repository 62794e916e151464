"""Wire models of log lines."""

from datetime import datetime
from typing import Literal

from determined_master.api.schemas.base import Time, Wire, rfc3339

Level = Literal["", "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Line(Wire):
    """``text``: as written, with control bytes and colours, truncated in pages; ``length``: of the whole text."""

    id: int
    time: Time
    level: Level
    rank: int | None
    run_id: int
    allocation_id: str | None
    container_id: str | None
    agent_id: str | None
    source: str
    stdtype: str
    text: str
    length: int


class LogPage(Wire):
    lines: list[Line]
    """Lines in ascending order of id."""
    at_start: bool
    """No matching line precedes the first of these; with ``after``: no line at all."""
    at_end: bool
    first_id: int | None
    last_id: int | None
    scanned_to: int | None
    """Where a search stopped for now: the next value of ``before``, or of ``after``, which it is for a page ``around``
    a line too. None if the page is full or the search is over."""


class FirstError(Wire):
    line: Line | None


class LogExtent(Wire):
    count: int
    first_id: int | None
    last_id: int | None
    errors: int
    number: int | None
    """Number of the asked-for line within the log, from 1; None if none was asked for."""


class WholeLine(Wire):
    line: Line


def message(time: datetime, container_id: str | None, rank: int | None, level: str, text: str) -> str:
    """Returns the line as clients print it."""
    container = (container_id or "")[:8].ljust(8)
    shown_rank = f" [rank={rank}]" if rank is not None else ""
    shown_level = f" {level}:" if level else ""
    return f"[{rfc3339(time)}] {container}{shown_rank} ||{shown_level} {text}\n"


def run_of(allocation_id: str | None) -> int:
    """Returns the run id of ``<task>.<run>``, or 0."""
    run = (allocation_id or "").rpartition(".")[2]
    return int(run) if run.isascii() and run.isdigit() and len(run) < 10 else 0
