"""Shortens long lines of output. Agent and launch layers do it alike: a line is the same with and without a layer."""

LINE_BYTES = 32768
MARGIN_BYTES = 128
"""A line may exceed its limit by this much: a shortened one with the prefix of its rank is not shortened again."""


class LongLine:
    """The bytes of a line that has not ended. Of one longer than ``limit`` only head and tail are held in memory."""

    def __init__(self, limit: int = LINE_BYTES) -> None:
        self._half = max(limit // 2, 1)
        self._bytes = bytearray()
        self._cut = 0

    def __len__(self) -> int:
        return len(self._bytes)

    def add(self, data: bytes) -> None:
        """Appends a part of the line."""
        self._bytes += data
        extra = len(self._bytes) - 2 * self._half
        if extra > (0 if self._cut else MARGIN_BYTES):
            del self._bytes[self._half : self._half + extra]
            self._cut += extra

    def take(self) -> bytes:
        """Returns the line, with the number of bytes that are missing in its middle, and begins a new one.

        >>> line = LongLine(limit=4)
        >>> line.add(b"ab" + bytes(200) + b"yz")
        >>> line.take()
        b'ab ... [200 bytes cut here] ... yz'
        """
        line, cut = bytes(self._bytes), self._cut
        self._bytes.clear()
        self._cut = 0
        if not cut:
            return line
        return line[: self._half] + b" ... [%d bytes cut here] ... " % cut + line[self._half :]
