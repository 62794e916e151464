"""Splits the bytes of a pipe into lines; shortens long lines and thins progress bars. Standard library only."""

import re

from determined_launch.long_lines import LINE_BYTES, LongLine

_ENDINGS = re.compile(rb"\r*\n|\r+")


class LineSplitter:
    """Splits one stream into lines.

    A line longer than ``limit`` keeps its head and tail and the number of bytes between. A piece that ends with a
    single carriage return is overwritten by the next piece: at most one of those is kept per ``interval`` seconds.
    """

    def __init__(self, limit: int = LINE_BYTES, interval: float = 1.0) -> None:
        self._interval = interval
        self._line = LongLine(limit)
        self._ends_with_return = False
        """True after a carriage return that a newline may follow."""
        self._redrawn: bytes | None = None
        self._redrawn_at = float("-inf")

    def feed(self, data: bytes, now: float) -> list[bytes]:
        """Returns the lines that ``data`` completes."""
        lines: list[bytes] = []
        at = 0
        if self._ends_with_return:
            data = b"\r" + data
            self._ends_with_return = False
        for ending in _ENDINGS.finditer(data):
            is_line = ending.group().endswith(b"\n")
            if not is_line and ending.end() == len(data):
                self._line.add(data[at : ending.start()])
                self._ends_with_return = True
                return lines
            self._line.add(data[at : ending.start()])
            at = ending.end()
            piece = self._line.take()
            if is_line:
                lines.append(piece)
                self._redrawn = None
            elif piece:
                self._redrawn = piece
                lines.extend(self.due(now))
        self._line.add(data[at:])
        return lines

    @property
    def deadline(self) -> float | None:
        """Returns the time at which :meth:`due` has a line; None if there is none."""
        return None if self._redrawn is None else self._redrawn_at + self._interval

    def due(self, now: float) -> list[bytes]:
        """Returns the newest overwritten piece if its interval is over."""
        if self._redrawn is None or now < self._redrawn_at + self._interval:
            return []
        line, self._redrawn, self._redrawn_at = self._redrawn, None, now
        return [line]

    def finish(self) -> list[bytes]:
        """Returns the rest at the end of the stream."""
        rest = self._line.take()
        if rest:
            return [rest]
        redrawn, self._redrawn = self._redrawn, None
        return [] if redrawn is None else [redrawn]
