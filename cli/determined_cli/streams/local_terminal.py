"""The terminal of this process: raw while a program in a task uses it, and its size."""

import contextlib
import os
import sys
import termios
import tty
from collections.abc import Iterator

DEFAULT_SIZE = os.terminal_size((80, 24))


def has_terminal() -> bool:
    """Returns True if input and output are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def size() -> tuple[int, int]:
    """Returns rows and columns."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        found = DEFAULT_SIZE
    return max(1, found.lines), max(1, found.columns)


@contextlib.contextmanager
def raw() -> Iterator[None]:
    """Passes every key on as it is, such as Ctrl-C, while the block runs."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setraw(descriptor, termios.TCSADRAIN)  # keeps what was typed before
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
