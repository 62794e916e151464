"""Runs a child process, passes signals on to it and returns its exit code as a shell would."""

import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    """Runs ``argv`` to its end. 128+n where signal n ended it, 127 where the program does not exist."""
    try:
        child = subprocess.Popen(list(argv), env=None if environ is None else dict(environ))
    except OSError as error:
        return start_failure(argv, error)
    with forwarding(child.send_signal):
        return exit_code(child.wait())


def start_failure(argv: Sequence[str], error: OSError) -> int:
    """Says in one line why ``argv`` did not start and gives the shell's code for it."""
    reason = "no such program" if isinstance(error, FileNotFoundError) else (error.strerror or str(error)).lower()
    print(f"cannot start {argv[0]!r}: {reason}", flush=True)
    return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def exit_code(status: int) -> int:
    """A shell's number for a status of ``subprocess``, which is ``-n`` for signal n."""
    return 128 - status if status < 0 else status


@contextmanager
def forwarding(send: Callable[[int], None]) -> Iterator[None]:
    """While open, signals that reach this process go to ``send`` in place of ending it. Main thread only."""

    def forward(number: int, _frame: FrameType | None) -> None:
        try:
            send(number)
        except ProcessLookupError:
            pass

    before = {number: signal.signal(number, forward) for number in FORWARDED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
