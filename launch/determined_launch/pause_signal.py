"""The signal that asks a plain script to save and end (``pause`` of the configuration): its names, its receivers, and
the marks in the run folder that say that it was sent and who saves without it."""

import os
import signal
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from determined_launch import environment, process_table, processes

DEFAULT = "SIGUSR1"
NAMES = ("SIGUSR1", "SIGUSR2", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGALRM", "SIGCONT", "SIGXCPU")
"""Signals that a script can be asked with: it can handle each of them."""

_SHELLS = (b"sh", b"bash", b"dash", b"ash", b"zsh", b"ksh")
_SENT = "pause-signal"
_SAVERS = "core-contexts"


def number_of(name: str) -> int:
    """Returns the number of one of ``NAMES`` on this machine."""
    return int(signal.Signals[name])


def receivers(root: int, number: int, savers: Collection[int]) -> list[int]:
    """Returns the processes of one script, ``root`` and below, that get signal ``number``.

    These are the outermost ones with a handler for it: a shell around the script would die of it, and what a handling
    process has started is that process's to end. A shell gets it only if nothing below handles it: for a ``trap`` of
    its exit, and for SIGINT while it waits, it handles signals that it does not pass on. Without any handler all of
    them get it, and are ended by it (SIGCONT ends none), unless one is of ``savers``, which learn from the master that
    they have to save.
    """
    if handling := _outermost(root, number):
        return handling
    tree = [root, *process_table.descendants(root)]
    return [] if set(tree) & set(savers) else tree


def _outermost(pid: int, number: int) -> list[int]:
    catches = process_table.catches(pid, number)
    if catches and not _is_shell(pid):
        return [pid]
    below = [found for child in process_table.children(pid) for found in _outermost(child, number)]
    return below or ([pid] if catches else [])


def _is_shell(pid: int) -> bool:
    words = process_table.command_line(pid)
    return bool(words) and os.path.basename(words[0]).lstrip(b"-") in _SHELLS


def roots(entrypoint: int, ancestor: int) -> list[int]:
    """Returns the first process of each rank below ``ancestor``, the process that has started the entrypoint:
    ``entrypoint`` itself where no launch layer runs."""
    wrappers = processes.wrappers_below(ancestor)
    if not wrappers:
        return [entrypoint]
    return [child for wrapper in wrappers for child in process_table.children(wrapper)]


def mark_as_sent(environ: Mapping[str, str]) -> None:
    """Notes that the ranks of this container get the signal from now on. A full disk keeps the mark away, not the
    signal."""
    with suppress(OSError):
        (_run_folder(environ) / _SENT).touch()


def is_sent(environ: Mapping[str, str]) -> bool:
    """Returns True if the ranks of this container got the signal: their ends are no failures any more."""
    return environment.PAUSE_SIGNAL in environ and (_run_folder(environ) / _SENT).exists()


@contextmanager
def saves_without_signal(environ: Mapping[str, str]) -> Iterator[None]:
    """Notes, for the duration of the block, that this process learns of a pause from the master by itself."""
    mark = _run_folder(environ) / _SAVERS / str(os.getpid())
    is_asked = environment.PAUSE_SIGNAL in environ
    if is_asked:
        with suppress(OSError):
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
    try:
        yield
    finally:
        if is_asked:
            with suppress(OSError):
                mark.unlink()


def savers(environ: Mapping[str, str]) -> set[int]:
    """Returns the processes that learn of a pause from the master by themselves."""
    try:
        return {int(name) for name in os.listdir(_run_folder(environ) / _SAVERS) if name.isdigit()}
    except OSError:
        return set()


def _run_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get(environment.RUN_DIR, environment.DEFAULT_RUN_DIR))
