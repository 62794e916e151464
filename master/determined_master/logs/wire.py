"""Lines of output as the page shows them."""

from typing import Literal

from determined_master.wire.model import Time, Wire

Level = Literal["", "TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class Line(Wire):
    """``text`` as it came, control bytes and colours included, cut in pages; ``length`` is that of the whole."""

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
    """Ascending by id."""
    at_start: bool
    """Nothing that matches stands before the first of these."""
    at_end: bool
    first_id: int | None
    last_id: int | None
    scanned_to: int | None
    """Where a search gave up for now: go on with it as ``before``, or as ``after`` where that was asked."""


class FirstError(Wire):
    line: Line | None


class LogExtent(Wire):
    count: int
    first_id: int | None
    last_id: int | None
    errors: int


class WholeLine(Wire):
    line: Line
