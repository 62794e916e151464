"""Splits a worker's output into lines and adds the rank as a prefix to each."""

import re

from determined_launch.long_lines import LongLine

_ENDS = re.compile(rb"\r\n|\n|\r")


class Prefixer:
    """Splits a byte stream into lines at newlines and carriage returns and adds a prefix to each."""

    def __init__(self, rank: int) -> None:
        self.prefix = f"[rank={rank}] ".encode()
        self._line = LongLine()
        self._ends_with_return = False
        """True after a carriage return that a newline may follow."""

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the lines that ``data`` completes, with their line ends; a long line is shortened as by the agent."""
        if self._ends_with_return:
            data, self._ends_with_return = b"\r" + data, False
        lines, begin = [], 0
        for end in _ENDS.finditer(data):
            self._line.add(data[begin : end.start()])
            begin = end.end()
            if end.group() == b"\r" and begin == len(data):
                self._ends_with_return = True
                break
            lines.append(self.prefix + self._line.take() + (b"\r" if end.group() == b"\r" else b"\n"))
        self._line.add(data[begin:])
        return lines

    def close(self) -> list[bytes]:
        """Returns the rest at the end of the stream, as a line."""
        rest = self._line.take()
        return [self.prefix + rest + b"\n"] if rest else []
