"""The lines that a run prints."""

import shlex
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

_LOCK = threading.Lock()


class Console:
    """Prints one line for each event. Lines of several workers do not mix."""

    def __init__(self, tasks: int, commands: Sequence[str], *, is_verbose: bool) -> None:
        self._tasks = tasks
        self._width = max((len(command) for command in commands), default=0)
        self._is_verbose = is_verbose

    def event(self, word: str, resource: str | None, command: str, index: int, output: Path, reason: str = "") -> None:
        """Prints ``START   gpu: 0, train: 1/ 4, output/Norm_new``. Successes are printed if asked for."""
        if word == "SUCCEED" and not self._is_verbose:
            return
        gpu = "" if resource is None else f"gpu: {resource}, "
        where = shlex.quote(str(output))
        why = f": {reason}" if reason else ""
        say(f"{word:<8}{gpu}{command:<{self._width}}:{index:2d}/{self._tasks:2d}, {where}{why}")


def say(text: str) -> None:
    with _LOCK:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def orphans(names: set[str]) -> str:
    """Returns the line about parameters that no template uses.

    >>> orphans(set()), orphans({"b", "a"})
    ('Orphan params: set()', "Orphan params: {'a', 'b'}")
    """
    listed = "{" + ", ".join(repr(name) for name in sorted(names)) + "}" if names else "set()"
    return f"Orphan params: {listed}"


def summary(title: str, outputs: Sequence[str], total: int) -> None:
    """Prints a count and the folders that it counts."""
    say(f"{title} tasks: {len(outputs)}/{total}")
    for output in outputs:
        say(f"    {shlex.quote(output)}")
