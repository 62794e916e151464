"""Splits the bytes of a pipe into lines; shortens long lines and thins progress bars. Standard library only."""

import re

_ENDINGS = re.compile(rb"\r*\n|\r+")


class LineSplitter:
    """Splits one stream into lines.

    A line longer than ``limit`` keeps its head and tail and the number of bytes between. A piece that ends with a
    single carriage return is overwritten by the next piece: at most one of those is kept per ``interval`` seconds.
    """

    def __init__(self, limit: int = 32768, interval: float = 1.0) -> None:
        self._half = max(limit // 2, 1)
        self._interval = interval
        self._rest = bytearray()
        self._cut = 0
        self._painted: bytes | None = None
        self._painted_at = float("-inf")

    def feed(self, data: bytes, now: float) -> list[bytes]:
        """Returns the lines that ``data`` completes."""
        self._rest += data
        lines: list[bytes] = []
        if b"\r" in self._rest:
            self._split_painted(lines, now)
        elif b"\n" in data:
            *whole, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            for line in whole:
                lines.append(self._finished(line))
            self._painted = None
        self._shorten()
        return lines

    @property
    def deadline(self) -> float | None:
        """Returns the time at which :meth:`due` has a line; None if there is none."""
        return None if self._painted is None else self._painted_at + self._interval

    def due(self, now: float) -> list[bytes]:
        """Returns the newest overwritten piece if its interval is over."""
        if self._painted is None or now < self._painted_at + self._interval:
            return []
        line, self._painted, self._painted_at = self._painted, None, now
        return [line]

    def finish(self) -> list[bytes]:
        """Returns the rest at the end of the stream."""
        rest = bytes(self._rest).rstrip(b"\r")
        self._rest.clear()
        if rest:
            return [self._finished(rest)]
        painted, self._painted = self._painted, None
        return [] if painted is None else [painted]

    def _split_painted(self, lines: list[bytes], now: float) -> None:
        data, at = bytes(self._rest), 0
        for ending in _ENDINGS.finditer(data):
            is_line = ending.group().endswith(b"\n")
            if not is_line and ending.end() == len(data):
                break  # a newline may follow the carriage return
            piece = self._finished(data[at : ending.start()])
            at = ending.end()
            if is_line:
                lines.append(piece)
                self._painted = None
            elif piece:
                self._painted = piece
                lines.extend(self.due(now))
        self._rest = bytearray(data[at:])

    def _finished(self, line: bytes) -> bytes:
        if self._cut == 0 and len(line) <= 2 * self._half:
            return line
        cut, self._cut = self._cut + max(len(line) - 2 * self._half, 0), 0
        return line[: self._half] + b" ... [%d bytes cut here] ... " % cut + line[-self._half :]

    def _shorten(self) -> None:
        extra = len(self._rest) - 2 * self._half
        if extra > 0:
            del self._rest[self._half : self._half + extra]
            self._cut += extra
