"""Use of tasks by streams: how many are open, and when the last one ended. In memory."""

from collections import Counter, OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from determined_master.clock import Clock

MAX_ENDS = 10_000
"""Number of tasks whose last end is kept; the master stores those that count before that many others have followed."""


class Use(NamedTuple):
    """Use of one task."""

    open_streams: int = 0
    last_end: datetime | None = None
    """When a stream into it ended last; None if none has since the start of the master."""


class Uses:
    """The uses of all tasks. ``on_change`` is called when a task gets its first open stream or loses the last one."""

    def __init__(self, clock: Clock, on_change: Callable[[], None]) -> None:
        self._clock = clock
        self._on_change = on_change
        self._open: Counter[str] = Counter()
        self._ends: OrderedDict[str, datetime] = OrderedDict()

    def of(self, task_id: str) -> Use:
        """Returns the use of a task. An end that a clock which was put back has left in the future becomes now."""
        end = self._ends.get(task_id)
        if end is not None and end > (now := self._clock.now()):
            end = self._ends[task_id] = now
        return Use(self._open.get(task_id, 0), end)

    def begin(self, task_id: str) -> None:
        """Notes that a stream is opened."""
        self._open[task_id] += 1
        if self._open[task_id] == 1:
            self._on_change()

    def end(self, task_id: str) -> None:
        """Notes that a stream has ended that had begun."""
        self._ends[task_id] = self._clock.now()
        self._ends.move_to_end(task_id)
        if len(self._ends) > MAX_ENDS:
            self._ends.popitem(last=False)
        self._open[task_id] -= 1
        if self._open[task_id] <= 0:
            del self._open[task_id]
            self._on_change()
