"""Splits a worker's output into lines and adds the rank as a prefix to each."""

import re

LINE_LIMIT = 8192

_ENDS = re.compile(rb"\r\n|\n|\r")


class Prefixer:
    """Splits a byte stream into lines at newlines and carriage returns and adds a prefix to each."""

    def __init__(self, rank: int) -> None:
        self.prefix = f"[rank={rank}] ".encode()
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the lines that ``data`` completes, with their line ends; cuts an overlong line."""
        text = self._rest + data
        lines, begin = [], 0
        for end in _ENDS.finditer(text):
            if end.group() == b"\r" and end.end() == len(text):
                break  # the newline of a "\r\n" may follow
            lines.append(self.prefix + text[begin : end.start()] + (b"\r" if end.group() == b"\r" else b"\n"))
            begin = end.end()
        self._rest = text[begin:]
        limit = LINE_LIMIT - len(self.prefix) - 1
        while len(self._rest) > limit:
            lines.append(self.prefix + self._rest[:limit] + b"\n")
            self._rest = self._rest[limit:]
        return lines

    def close(self) -> list[bytes]:
        """Returns the rest at the end of the stream, as a line."""
        rest, self._rest = self._rest, b""
        if not rest:
            return []
        return [self.prefix + rest.removesuffix(b"\r") + b"\n"]
