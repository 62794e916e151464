"""Prints reported metrics to the task's log at level DEBUG: one line a minute for each group, and the last report."""

import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

INTERVAL_SECONDS = 60.0
"""Between two lines of a group: the log is the user's, and the master stores every report anyway."""
DEBUG_INTERVAL_SECONDS = 1.0
"""The same with ``debug: true``."""
MAX_LENGTH = 500
"""Characters of a line; the master stores every value anyway."""


class MetricLog:
    """Writes lines such as ``DEBUG: validation metrics after 100 steps: loss 0.25, accuracy 0.9``.

    A report within the interval of its group is held back. The next report replaces it, and :meth:`close` writes it.

    Args:
        enabled: False writes nothing.
        interval: seconds between two lines of a group.
        write: receives each line with its line break; by default standard error.
        clock: returns seconds that never go back.
    """

    def __init__(
        self,
        *,
        enabled: bool = True,
        interval: float = INTERVAL_SECONDS,
        write: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._enabled = enabled
        self._interval = interval
        self._write = write or _to_stderr
        self._clock = clock
        self._lock = threading.Lock()
        self._next: dict[str, float] = {}
        self._held: dict[str, tuple[int, Mapping[str, Any]]] = {}

    def add(self, group: str, steps: int, metrics: Mapping[str, Any]) -> None:
        """Writes a report, or holds it back if the last line of its group is younger than the interval."""
        if not self._enabled:
            return
        with self._lock:
            now = self._clock()
            if now < self._next.get(group, now):
                self._held[group] = (steps, metrics)
                return
            self._held.pop(group, None)
            self._next[group] = now + self._interval
        self._write(line(group, steps, metrics))

    def close(self) -> None:
        """Writes the last report of each group if it was held back."""
        with self._lock:
            held, self._held = self._held, {}
        for group, (steps, metrics) in held.items():
            self._write(line(group, steps, metrics))


def line(group: str, steps: int, metrics: Mapping[str, Any]) -> str:
    """Returns one line of at most :data:`MAX_LENGTH` characters and a line break. The agent reads its level.

    >>> line("training", 10, {"loss": 0.123456789, "note": "a"})
    'DEBUG: training metrics after 10 steps: loss 0.123457, note a\\n'
    """
    values = ", ".join(f"{name} {_text(value)}" for name, value in metrics.items())
    text = " ".join(f"DEBUG: {group} metrics after {steps} steps: {values}".split())
    return f"{text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 1] + '…'}\n"


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):  # a closed stream must not end a training
        pass
