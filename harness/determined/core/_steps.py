"""Steps for whoever watches that this worker still moves: a counter in a small file, whose mtime is the last step.

Only where the launch layer named a file (``DET_STEP_FILE``); else a mark is a call of nothing.
"""

import contextlib
import os
import struct
from collections.abc import Callable, Mapping

from determined_launch import environment

_COUNT = struct.Struct("<Q")


def _nothing() -> None:
    pass


class _Marker:
    """One write of eight bytes a step: no seek, no flush, and the kernel sets the time."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        self._steps = 0

    def __call__(self) -> None:
        self._steps += 1
        with contextlib.suppress(OSError):  # a full disk must not end a training
            os.pwrite(self._file, _COUNT.pack(self._steps), 0)


_current: Callable[[], None] = _nothing


def use(environ: Mapping[str, str]) -> None:
    """From here on :func:`mark` writes to the file that the environment names, if it names one that is there."""
    global _current
    path = environ.get(environment.STEP_FILE)
    if isinstance(_current, _Marker) and _current.path == path:
        return  # a second context of this process counts on
    _current = _nothing
    if path:
        with contextlib.suppress(OSError):
            _current = _Marker(path)


def mark() -> None:
    """One more step is done: a report, a question for preemption, a batch."""
    _current()


def is_watched() -> bool:
    """Whether a mark does anything, for loops that would rather not call."""
    return _current is not _nothing
