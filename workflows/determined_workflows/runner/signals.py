"""The signals that end a run, read like a file: no handler interrupts what the run does."""

import os
import signal
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""End the commands; the second one kills them."""
DRAIN = signal.SIGUSR1
"""Lets the running commands end, and starts no others."""


KILL = signal.SIGUSR2
"""Kills the commands."""
_ALL = (*ENDING, DRAIN, KILL)


class Signals:
    """Collects signals while it is entered. Only the main thread can enter it."""

    def __enter__(self) -> "Signals":
        self._reader, self._writer = os.pipe()
        for descriptor in (self._reader, self._writer):
            os.set_blocking(descriptor, False)
        self._before = [(number, signal.signal(number, _ignore)) for number in _ALL]
        self._wakeup = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._wakeup)
        for number, handler in self._before:
            signal.signal(number, handler)
        os.close(self._reader)
        os.close(self._writer)

    def fileno(self) -> int:
        """Returns the descriptor that becomes readable when there are signals."""
        return self._reader

    def read(self) -> list[int]:
        """Returns the signals that have come. Others are left out: libraries handle SIGCHLD, for example."""
        try:
            return [number for number in os.read(self._reader, 4096) if number in _ALL]
        except BlockingIOError:
            return []


def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass
