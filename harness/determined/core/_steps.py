"""Step counter for the hang watchdog: an eight-byte file whose mtime is the time of the last step.

The counter is written only if the launch layer named a file (``DET_STEP_FILE``); otherwise a mark does nothing.
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
    """Writes eight bytes per step, without seek or flush; the kernel sets the time."""

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
    """Directs :func:`mark` to the file that the environment names, if that file exists."""
    global _current
    path = environ.get(environment.STEP_FILE)
    if isinstance(_current, _Marker) and _current.path == path:
        return  # a second context of this process continues the count
    _current = _nothing
    if path:
        with contextlib.suppress(OSError):
            _current = _Marker(path)


def mark() -> None:
    """Counts one more step: a report, a preemption check or a batch."""
    _current()


def is_watched() -> bool:
    """Returns True if a mark has an effect, so that tight loops can skip the call."""
    return _current is not _nothing
