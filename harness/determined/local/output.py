"""Forwards a child's output with the paths that the user knows, and keeps its last traceback."""

import re
from collections import deque
from collections.abc import Callable
from typing import IO

_FRAME = re.compile(r'\s*File "(?P<file>[^"]+)", line (?P<line>\d+)')
_RAISED = re.compile(r"(?P<error>[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt|HP|Warning)?)(?:: (?P<text>.*))?\Z")
KEPT = 2000


class Output:
    """Lines of one stream. ``rename`` maps the working copy's paths to the user's own."""

    def __init__(self, rename: Callable[[str], str]) -> None:
        self._rename = rename
        self.last: deque[str] = deque(maxlen=KEPT)

    def pump(self, source: IO[bytes], target: IO[str]) -> None:
        """Forwards lines until the child closes the stream."""
        for raw in iter(source.readline, b""):
            line = self._rename(raw.decode("utf-8", "replace"))
            self.last.append(line.rstrip("\n"))
            target.write(line)
            target.flush()


def find_failure(lines: "deque[str] | list[str]", folder: str) -> str | None:
    """Returns ``file:line: error`` of the last traceback, from its innermost frame in the user's ``folder``.

    >>> find_failure(['Traceback (most recent call last):', '  File "ctx/a.py", line 3, in f', 'ValueError: no'], "ctx")
    'ctx/a.py:3: ValueError: no'
    """
    place = error = None
    prefix = folder.rstrip("/") + "/"
    inside = False
    for line in lines:
        if line.startswith("Traceback (most recent call last)"):
            inside, place = True, None
        elif inside and (frame := _FRAME.match(line)):
            if frame["file"].startswith(prefix) and "/site-packages/" not in frame["file"]:
                place = f"{frame['file']}:{frame['line']}"
        elif not line.startswith(" ") and line and (inside or place) and _RAISED.match(line):
            error, inside = line, False
    if error is None:
        return None
    return f"{place}: {error}" if place else error
