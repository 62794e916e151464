"""Tracebacks of workers, cut to the frames of the user, so that their file and line are near the error."""

import sys
import traceback
from pathlib import Path

_OURS = str(Path(__file__).resolve().parent)
_MAX_FRAMES_BELOW = 3


def show(error: BaseException, worker: str) -> None:
    """Prints the traceback of a worker's error, with its last line last.

    The frames of our workers above the user's are left out, and most of those of libraries below.
    """
    shown = traceback.TracebackException.from_exception(error)
    shown.stack = cut(shown.stack)
    print(f"{worker} ends because of an error:", file=sys.stderr)
    print("".join(shown.format()), end="", file=sys.stderr, flush=True)


def cut(stack: traceback.StackSummary) -> traceback.StackSummary:
    """Returns the frames from the user's first one on, with few of the libraries below the user's last one.

    The stack stays as it is if no frame is the user's.
    """
    users = [index for index, frame in enumerate(stack) if is_users(frame.filename)]
    if not users:
        return stack
    below = list(stack[users[-1] + 1 :])[-_MAX_FRAMES_BELOW:]
    return traceback.StackSummary.from_list([*stack[users[0] : users[-1] + 1], *below])


def is_users(file: str) -> bool:
    """Returns True for a file that belongs neither to us nor to an installed library."""
    if file.startswith(("<", _OURS)):
        return False
    parts = Path(file).parts
    installed = {"site-packages", "dist-packages", "determined", "determined_launch"}
    return not installed.intersection(parts) and not file.startswith(f"{sys.base_prefix}/lib/")
