"""Messages to the person at the terminal, and the exit code after Ctrl-C."""

import sys

INTERRUPTED = 130


def say(text: str) -> None:
    """Prints a message to stderr; stdout carries data only."""
    sys.stderr.write(f"{text}\n")
