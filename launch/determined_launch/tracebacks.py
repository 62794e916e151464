"""Reads tracebacks in the output of a Python program, line by line."""

import os
import re
from collections.abc import Iterable

_START = "Traceback (most recent call last):"
_GROUP = f"+ Exception Group {_START}"
_GROUP_LINE = re.compile(r"^\s*\| ?")
_FRAME = re.compile(r'\s+File "(.+?)", line (\d+)')
_LIBRARY = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages|lib/python3[^/]*|determined|determined_launch|determined_workflows)/|^<"
)
MAX_CHARACTERS = 2000
MAX_LINES_AFTER = 20


class TracebackReader:
    """Keeps the error of the last complete traceback, and the last place of the user's code in it.

    A traceback that many lines follow was an error that the program has handled, and is forgotten.

    >>> reader = TracebackReader()
    >>> reader.feed(["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "KeyError: 'x'"])
    >>> reader.error, reader.place
    ("KeyError: 'x'", 'train.py:3')
    """

    def __init__(self) -> None:
        self.error = ""
        self.place = ""
        self._is_inside = self._is_group = False
        self._own = ""
        self._last = ""
        self._after = 0

    def feed(self, lines: Iterable[str]) -> None:
        """Reads the next lines, without line ends."""
        for line in lines:
            if line == _START or line.strip() == _GROUP:
                self._is_inside, self._own, self._last = True, "", ""
                self._is_group = line != _START
            elif self._is_inside:
                self._read(_GROUP_LINE.sub("", line) if self._is_group else line)
            elif self.error and not line[:1].isspace():  # a long message, and a group of errors, are indented
                self._after += 1
                if self._after > MAX_LINES_AFTER:
                    self.error = self.place = ""

    def _read(self, line: str) -> None:
        frame = _FRAME.match(line)
        if frame is not None:
            self._last = f"{_relative(frame[1])}:{frame[2]}"
            if not _LIBRARY.search(frame[1]):
                self._own = self._last
        elif line and not line[0].isspace():
            self._is_inside, self._after = False, 0
            self.error, self.place = line[:MAX_CHARACTERS], self._own or self._last


def _relative(path: str) -> str:
    """Returns a path below the working folder without it."""
    try:
        return path.removeprefix(os.getcwd() + "/")
    except FileNotFoundError:  # the program has removed it
        return path
