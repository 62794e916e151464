"""The step file of a worker, by which the hang watchdog of the launch layer finds the one that hangs.

The watchdog blames the process with the fewest steps. Workers are called in turn, so a count of calls would blame one
that waits. A worker writes the number of completed steps while it is busy, and two more while it waits: in the same
step, and in the next one before its first call, a worker that waits is ahead of one that is busy.
"""

import contextlib
import os
from collections.abc import Mapping

_STEP_FILE = "DET_STEP_FILE"
_AHEAD = 2


class StepFile:
    """Writes the file that the environment names; without one, the methods do nothing."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._path = environ.get(_STEP_FILE)

    def begin(self, step: int) -> None:
        """Notes that the worker begins to answer a request of a step."""
        self._write(step)

    def end(self, step: int) -> None:
        """Notes that the worker waits for its next request."""
        self._write(step + _AHEAD)

    def _write(self, count: int) -> None:
        if not self._path:
            return
        with contextlib.suppress(OSError):  # a full disk must not end a training
            file = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.pwrite(file, count.to_bytes(8, "little"), 0)
            finally:
                os.close(file)
