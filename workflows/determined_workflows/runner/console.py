"""The lines that a run prints, and the progress line below them on a terminal."""

import os
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

DEFAULT_COLUMNS = 80
REDRAW_SECONDS = 0.1
_CLEAR = "\r\x1b[K"


@dataclass
class TaskCounts:
    """Counts of tasks."""

    total: int
    running: int = 0
    finished: int = 0
    failed: int = 0
    skipped: int = 0

    def line(self, elapsed: float) -> str:
        """Returns the counts, and the time that is left if those to come take as long as those that have run.

        >>> TaskCounts(40, running=2, finished=12, failed=1, skipped=7).line(130.0)
        '2 running, 1 failed, 20/40 done, 3:20 to go'
        """
        done = self.finished + self.failed
        parts = [f"{self.running} running", f"{self.failed} failed", f"{done + self.skipped}/{self.total} done"]
        left = self.total - done - self.skipped
        if done and left:
            parts.append(f"{_clock(elapsed * left / done)} to go")
        return ", ".join(parts)


@dataclass
class Console:
    """Prints one line for each event, keeps it for ``logs``, and shows the progress on a terminal."""

    progress: TaskCounts
    commands: Sequence[str]
    is_verbose: bool = False
    has_progress: bool = True
    stream: TextIO = field(default_factory=lambda: sys.stdout)

    def __post_init__(self) -> None:
        self._width = max((len(command) for command in self.commands), default=0)
        self._began = self._drawn_at = time.monotonic()
        self._drawn = ""
        self._kept: list[str] = []
        self._transcript: TextIO | None = None
        self._is_terminal = self.has_progress and self.stream.isatty() and os.environ.get("TERM") != "dumb"

    def keep(self, path: Path) -> None:
        """Writes all lines to a file too, those that have been printed first. Raises OSError."""
        path.unlink(missing_ok=True)  # who still reads the lines of the run before keeps them
        self._transcript = path.open("w", encoding="utf-8", errors="backslashreplace", buffering=1)
        self._transcript.writelines(self._kept)

    def event(self, word: str, resource: str | None, command: str, index: int, output: Path, reason: str = "") -> None:
        """Prints ``START   gpu: 0, train: 1/ 4, output/Norm_new``. Successes are printed if asked for."""
        if word == "SUCCEED" and not self.is_verbose:
            return
        gpu = "" if resource is None else f"gpu: {resource}, "
        where = on_one_line(shlex.quote(str(output)))
        why = f": {reason}" if reason else ""
        self.say(f"{word:<8}{gpu}{command:<{self._width}}:{index:2d}/{self.progress.total:2d}, {where}{why}")

    def say(self, text: str) -> None:
        """Prints a line."""
        line = f"{text}\n"
        if self._transcript is None:
            self._kept.append(line)
        else:
            self._transcript.write(line)
        self.stream.write(f"{_CLEAR if self._drawn else ''}{line}{self._drawn}")
        self.stream.flush()
        self.tick()

    def tick(self) -> None:
        """Brings the progress line up to date, on a terminal."""
        now = time.monotonic()
        if not self._is_terminal or (self._drawn and now - self._drawn_at < REDRAW_SECONDS):
            return
        self._drawn_at = now
        self._draw(self.progress.line(now - self._began)[: _columns(self.stream) - 1])

    def end_progress(self) -> None:
        """Removes the progress line, for good."""
        self._is_terminal = False
        self._draw("")

    def close(self) -> None:
        """Closes the file of lines."""
        if self._transcript is not None:
            self._transcript.close()

    def summary(self, title: str, outputs: Sequence[str]) -> None:
        """Prints a count and the folders that it counts."""
        self.say(f"{title} tasks: {len(outputs)}/{self.progress.total}")
        for output in outputs:
            self.say(f"    {on_one_line(shlex.quote(output))}")

    def _draw(self, text: str) -> None:
        if text != self._drawn:
            self.stream.write(f"{_CLEAR}{text}")
            self.stream.flush()
            self._drawn = text


def on_one_line(text: str) -> str:
    """Returns a text whose control characters are written as escapes."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def orphans(names: set[str]) -> str:
    """Returns the line about parameters that no template uses.

    >>> orphans(set()), orphans({"b", "a"})
    ('Orphan params: set()', "Orphan params: {'a', 'b'}")
    """
    listed = "{" + ", ".join(repr(name) for name in sorted(names)) + "}" if names else "set()"
    return f"Orphan params: {listed}"


def _columns(stream: TextIO) -> int:
    """Returns the width of the terminal now: it may have been resized."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_COLUMNS
    except OSError:
        return DEFAULT_COLUMNS


def _clock(seconds: float) -> str:
    """Formats seconds as minutes and seconds, with hours if there are any."""
    hours, rest = divmod(int(seconds), 3600)
    minutes, left = divmod(rest, 60)
    return f"{hours}:{minutes:02}:{left:02}" if hours else f"{minutes}:{left:02}"
