"""Runs a child process, forwards signals to it and returns its exit code as a shell would."""

import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import FrameType

FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)

NOT_FOUND = 127
NOT_EXECUTABLE = 126


def run(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> int:
    """Runs ``argv`` and waits for its end. Returns 128+n after signal n, 127 if the program does not exist."""
    with SignalForwarder() as signals:
        try:
            child = subprocess.Popen(list(argv), env=None if environ is None else dict(environ))
        except OSError as error:
            return start_failure(argv, error)
        signals.send_to(child.send_signal)
        return exit_code(child.wait())


def start_failure(argv: Sequence[str], error: OSError) -> int:
    """Prints why ``argv`` did not start. Returns the exit code of a shell for it."""
    reason = "no such program" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()
    print(f"cannot start {argv[0]!r}: {reason}", flush=True)
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def exit_code(status: int) -> int:
    """Converts a status of ``subprocess``, which is ``-n`` for signal n, to a shell's exit code."""
    return 128 - status if status < 0 else status


class SignalForwarder:
    """Context manager that forwards the signals of this process to a child instead of ending this process.

    Open it before the child is started: it keeps earlier signals and sends them after the call of ``send_to``, so no
    signal ends this process and leaves its child behind. Ignored signals stay ignored, as ``nohup`` needs. Main thread
    only.
    """

    def __init__(self, send: Callable[[int], None] | None = None) -> None:
        self._send = send
        self._early: list[int] = []
        self._restore = ExitStack()

    def __enter__(self) -> "SignalForwarder":
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._restore.callback(signal.signal, number, signal.signal(number, self._forward))
        return self

    def __exit__(self, *_: object) -> None:
        self._restore.close()

    def send_to(self, send: Callable[[int], None]) -> None:
        """Sets the child's ``send`` function and sends the signals that arrived before."""
        self._send = send
        while self._early:
            self._forward(self._early.pop(0), None)

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._send is None:
            self._early.append(number)
            return
        try:
            self._send(number)
        except ProcessLookupError:
            pass
