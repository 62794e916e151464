"""Bounds on SSH handshakes of clients that nobody knows yet. In memory."""

import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from determined.errors import TooManyRequests

WINDOW = timedelta(minutes=1)
MAX_OPEN = 64
MAX_OPEN_OF_TASK = 8
MAX_FAILURES = 600
"""Failed handshakes in a minute at this master, MAX_FAILURES_OF_TASK at one task, and MAX_FAILURES_OF_ADDRESS of one
address."""
MAX_FAILURES_OF_TASK = 120
MAX_FAILURES_OF_ADDRESS = 30
MAX_ADDRESSES = 10_000
MAX_KNOWN = 10_000
_EVERYBODY = ""


@dataclass(eq=False)
class Handshake:
    """A handshake until its client has shown a key that is let in, or is gone."""

    task_id: str
    address: str
    end: Callable[[], None]
    """Called if a newer handshake takes its place."""
    is_admitted: bool = False


@dataclass
class Handshakes:
    """Counts handshakes that are open, and those that failed.

    Where too many are open, the oldest one is ended: a client with the right key needs a fraction of a second, so it is
    rarely the oldest. An address that was admitted to a task before is preferred, and failures of others do not hold it
    up.
    """

    _open: dict[Handshake, None] = field(default_factory=dict)
    """In the order of their begin."""
    _failures: dict[str, deque[datetime]] = field(default_factory=dict)
    """Times by ``task ID``, ``address ADDRESS``, or everybody."""
    _known: dict[tuple[str, str], None] = field(default_factory=dict)

    @property
    def open(self) -> int:
        """Returns how many handshakes are open."""
        return len(self._open)

    @contextlib.contextmanager
    def begin(
        self, task_id: str, address: str, now: Callable[[], datetime], end: Callable[[], None]
    ) -> Iterator[Handshake]:
        """Counts a handshake while the block runs, until ``admit``. Raises TooManyRequests at its start.

        Args:
            task_id: as the client names it; there may be no such task.
            address: of the client.
            now: returns the time.
            end: ends this handshake; it may be called at any time in the block.
        """
        self._check(task_id, address, now())
        self._make_room(task_id)
        handshake = Handshake(task_id, address, end)
        self._open[handshake] = None
        try:
            yield handshake
        finally:
            self._open.pop(handshake, None)
            if not handshake.is_admitted:
                self._note_failure(handshake, now())

    def admit(self, handshake: Handshake) -> None:
        """Notes that the client has shown a key that is let in."""
        handshake.is_admitted = True
        self._open.pop(handshake, None)
        _put_last(self._known, (handshake.task_id, handshake.address), MAX_KNOWN)

    def _check(self, task_id: str, address: str, now: datetime) -> None:
        limits = [(f"address {address}", f"from {address}", MAX_FAILURES_OF_ADDRESS)]
        if (task_id, address) not in self._known:
            limits += [
                (f"task {task_id}", f"at task {task_id}", MAX_FAILURES_OF_TASK),
                (_EVERYBODY, "at this master", MAX_FAILURES),
            ]
        for key, where, most in limits:
            times = self._failures.get(key, deque())
            if sum(now - at < WINDOW for at in times) >= most:
                raise TooManyRequests(
                    f"{most} SSH connections {where} showed no key that is let in within a minute; try again in a "
                    "minute, or use `det ssh-config`, which signs in first"
                )

    def _make_room(self, task_id: str) -> None:
        of_task = [each for each in self._open if each.task_id == task_id]
        for handshakes, most in ((of_task, MAX_OPEN_OF_TASK), (list(self._open), MAX_OPEN)):
            if len(handshakes) >= most:
                strangers = [each for each in handshakes if (each.task_id, each.address) not in self._known]
                oldest = (strangers or handshakes)[0]
                self._open.pop(oldest, None)
                oldest.end()

    def _note_failure(self, handshake: Handshake, now: datetime) -> None:
        for key, most in (
            (f"address {handshake.address}", MAX_FAILURES_OF_ADDRESS),
            (f"task {handshake.task_id}", MAX_FAILURES_OF_TASK),
            (_EVERYBODY, MAX_FAILURES),
        ):
            times = self._failures.pop(key, None) or deque(maxlen=most)
            times.append(now)
            self._failures[key] = times  # the newest key is the last
        # Everybody's is always among the newest.
        while len(self._failures) > MAX_ADDRESSES:
            del self._failures[next(iter(self._failures))]


def _put_last(table: dict[tuple[str, str], None], key: tuple[str, str], most: int) -> None:
    table.pop(key, None)
    table[key] = None
    if len(table) > most:
        del table[next(iter(table))]
