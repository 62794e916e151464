"""A program on a terminal of its own, as a person at a keyboard has it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence

from tests.support.waiting import SLOWEST

SECONDS = 10.0
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\x1b\][^\x07]*\x07")


class TerminalProgram:
    """Starts ``argv`` on a terminal of 40 rows and 100 columns."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str], rows: int = 40, columns: int = 100) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.execvpe(argv[0], list(argv), dict(environment))
        self.seen = ""
        """All that it has printed, without escape sequences."""
        self._place = 0
        self._code: int | None = None
        self.resize(rows, columns)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def prints(self, text: str) -> str:
        """Waits for a text behind what was waited for before. Returns what it printed until then."""
        until = time.monotonic() + SLOWEST * SECONDS
        while (found := self.seen.find(text, self._place)) < 0:
            assert time.monotonic() < until, f"{text!r} was not printed: {self.seen[self._place :]!r}"
            assert self._read(), f"it ended without {text!r}: {self.seen!r}"
        before, self._place = self.seen[self._place : found], found + len(text)
        return before

    def ended(self) -> int:
        """Waits for its end. Returns its exit code."""
        until = time.monotonic() + SLOWEST * SECONDS
        while self._read():
            assert time.monotonic() < until, f"it did not end: {self.seen!r}"
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._code

    def close(self) -> None:
        if self._code is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._terminal)

    def _read(self) -> bool:
        """Reads what is there. Returns False at the end."""
        if not select.select([self._terminal], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self._terminal, 1 << 16)
        except OSError:
            data = b""
        self.seen += _ESCAPES.sub("", data.decode(errors="replace"))
        return bool(data)
