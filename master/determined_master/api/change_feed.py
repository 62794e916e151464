"""Change feed of the page: changes are debounced, numbered and buffered, so that a stream can resume."""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

from determined_master import notifications
from determined_master.trials.task_name import experiment_of

SOON = 0.1
"""Minimum seconds between two batches with a change of state. A batch of figures does not delay them."""
FIGURES_SOON = 0.25
"""Minimum seconds between any batch and one with only metrics and log lines: they never end during training, and a page
redraws for each."""
FIGURES = frozenset({"metrics", "logs", "columns", "events"})
MAX_GATHERED = 1000
"""While nobody follows, this many changes become a batch. Fewer wait for the next stream."""
MAX_BATCHES = 2000
MAX_CHANGES = 20_000

_BY_TOPIC = {notifications.CLUSTER: "cluster", notifications.EVENTS: "events", notifications.COLUMNS: "columns"}
_BY_PREFIX = frozenset({"experiment", "metrics", "deleted", "logs"})

Named = tuple[str, str]
"""Kind and id of a changed object."""


def change_of(topic: str) -> Named | None:
    """Returns the change that a page is notified of for a topic, or None."""
    if topic in _BY_TOPIC:
        return _BY_TOPIC[topic], ""
    prefix, _, name = topic.partition(":")
    if prefix == "task":
        experiment_id = experiment_of(name)
        return None if experiment_id is None else ("experiment", str(experiment_id))
    return (prefix, name) if prefix in _BY_PREFIX else None


@dataclass(frozen=True)
class Batch:
    epoch: int
    number: int
    changes: Sequence[Named]

    @cached_property
    def event(self) -> bytes:
        """Returns the server-sent event of this batch, encoded once for all streams."""
        changes = [{"kind": kind, "id": name} for kind, name in self.changes]
        return encoded(f"{self.epoch}-{self.number}", "change", json.dumps({"changes": changes}))


def encoded(name: str, kind: str, data: str) -> bytes:
    """Formats a server-sent event; ``data`` contains no line breaks."""
    return f"id: {name}\nevent: {kind}\ndata: {data}\n\n".encode()


class Debouncer:
    """Debouncer: pending changes of the next batch, without duplicates. Pure: it takes the time as an argument."""

    def __init__(self) -> None:
        self._waiting: dict[Named, None] = {}
        self._last = self._last_state = float("-inf")

    def add(self, changes: Collection[Named]) -> None:
        self._waiting.update(dict.fromkeys(changes))

    def __len__(self) -> int:
        return len(self._waiting)

    def due(self) -> float | None:
        """Returns when the next batch is due, or None if nothing is pending."""
        if not self._waiting:
            return None
        return self._last + FIGURES_SOON if self._is_figures() else self._last_state + SOON

    def take(self, now: float) -> Sequence[Named]:
        if not self._is_figures():
            self._last_state = now
        taken, self._waiting, self._last = tuple(self._waiting), {}, now
        return taken

    def _is_figures(self) -> bool:
        return all(kind in FIGURES for kind, _ in self._waiting)


class ReplayBuffer:
    """Replay buffer: the newest batches, bounded."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()
        self._changes = 0
        self.newest = 0

    def add(self, epoch: int, changes: Sequence[Named]) -> None:
        self.newest += 1
        self._batches.append(Batch(epoch, self.newest, changes))
        self._changes += len(changes)
        while len(self._batches) > MAX_BATCHES or (self._changes > MAX_CHANGES and len(self._batches) > 1):
            self._changes -= len(self._batches.popleft().changes)

    def since(self, number: int) -> Sequence[Batch] | None:
        """Returns all batches after ``number``, or None if some of them are gone or the number is unknown."""
        missed = self.newest - number
        if missed < 0 or missed > len(self._batches):
            return None
        return [self._batches[index] for index in range(len(self._batches) - missed, len(self._batches))]


class ChangeFeed:
    """The change feed: it observes all published topics and wakes its streams."""

    def __init__(
        self, epoch: Callable[[], int], wake: Callable[[Collection[str]], None], is_followed: Callable[[], bool]
    ) -> None:
        """``is_followed`` returns True while there is a stream."""
        self._epoch = epoch
        self._wake = wake
        self._is_followed = is_followed
        self._gathering = Debouncer()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = float("inf")
        self.ring = ReplayBuffer()
        self.logins = 0
        """Incremented when sign-ins may have ended."""

    def on_topics(self, topics: Collection[str]) -> None:
        if notifications.SESSIONS in topics:
            self.logins += 1
        changes = [change for topic in topics if (change := change_of(topic)) is not None]
        if changes:
            self._gathering.add(changes)
            if self._is_followed() or len(self._gathering) >= MAX_GATHERED:
                self._arm()

    @property
    def is_quiet(self) -> bool:
        """Returns True if no batch is due. Changes that nobody follows wait without one."""
        return self._timer is None

    def name_of(self, number: int) -> str:
        """Returns the id of an event. It includes the master's id, so ids of another or earlier master do not match."""
        return f"{self._epoch()}-{number}"

    def newest(self) -> int:
        """Returns the number of the newest batch, to which this adds what was gathered while nobody followed."""
        if self._timer is None and len(self._gathering):
            self._send()
        return self.ring.newest

    def place(self, event_id: str) -> tuple[int, bool]:
        """Returns the number after which a stream continues, and True if no event was missed."""
        newest = self.newest()
        epoch, _, number = event_id.partition("-")
        is_number = number.isdecimal() and len(number) < 16
        if is_number and epoch == str(self._epoch()) and self.ring.since(int(number)) is not None:
            return int(number), True
        return newest, False

    def _arm(self) -> None:
        due = self._gathering.due()
        if due is None or due >= self._timer_at:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = due
        self._timer = asyncio.get_running_loop().call_later(max(0.0, due - time.monotonic()), self._send)

    def _send(self) -> None:
        self._timer, self._timer_at = None, float("inf")
        self.ring.add(self._epoch(), self._gathering.take(time.monotonic()))
        self._wake([notifications.FEED])
