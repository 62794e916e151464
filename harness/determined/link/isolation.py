"""Runs the items of a loop such that a failed item does not stop the others. The loops of master and agent use it."""

import logging
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

FIRST_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 60.0
FORGET_SECONDS = 600.0


class SharedFailure(Exception):
    """A failure that affects all items of a loop, such as a full disk. Isolation passes it on to the loop."""


@dataclass
class _Failure:
    cause: str
    count: int
    retry_at: float


class Isolation:
    """Catches the exceptions of single items, and skips a failed item until its back-off is over.

    A SharedFailure belongs to no item: it is raised again and skips no item.

    The back-off doubles with each consecutive failure, up to MAX_BACKOFF_SECONDS. The traceback of an item is logged
    once; it is logged again only after another exception, or after the item has worked in between.
    """

    def __init__(self, loop: str, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._loop = loop
        self._logger = logger
        self._clock = clock
        self._failures: dict[tuple[str, object], _Failure] = {}

    def is_due(self, kind: str, item: object) -> bool:
        """Returns False while a failed item is skipped."""
        failure = self._failures.get((kind, item))
        return failure is None or failure.retry_at <= self._clock()

    async def run(self, kind: str, item: object, work: Callable[[], Awaitable[object]]) -> bool:
        """Awaits ``work`` unless the item is skipped; returns True if it was done."""
        if not self.is_due(kind, item):
            return False
        with self.attempt(kind, item):
            await work()
        return (kind, item) not in self._failures

    def run_now(self, kind: str, item: object, work: Callable[[], object]) -> bool:
        """Runs ``work`` like :meth:`run`, without awaiting."""
        if not self.is_due(kind, item):
            return False
        with self.attempt(kind, item):
            work()
        return (kind, item) not in self._failures

    @contextmanager
    def attempt(self, kind: str, item: object) -> Iterator[None]:
        """Catches, logs and records the exceptions of its block; call :meth:`is_due` before."""
        try:
            yield
        except SharedFailure:
            raise
        except Exception as error:
            self._note(kind, item, error)
        else:
            self._failures.pop((kind, item), None)

    def seconds_left(self) -> float | None:
        """Returns the seconds until the next failed item is retried; None if there is none."""
        now = self._clock()
        # An item without recent attempts no longer exists, or its loop has nothing to do for it.
        self._failures = {key: f for key, f in self._failures.items() if now - f.retry_at < FORGET_SECONDS}
        left = [f.retry_at - now for f in self._failures.values() if f.retry_at > now]
        return min(left, default=None)

    def soonest(self, *waits: float | None) -> float | None:
        """Returns the least of ``waits`` and :meth:`seconds_left`; None if there is nothing to wait for."""
        return min((wait for wait in (*waits, self.seconds_left()) if wait is not None), default=None)

    def _note(self, kind: str, item: object, error: Exception) -> None:
        known = self._failures.get((kind, item))
        cause = f"{type(error).__name__}: {error}"
        count = known.count + 1 if known else 1
        wait = min(MAX_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2 ** min(count - 1, 16))
        self._failures[kind, item] = _Failure(cause, count, self._clock() + wait)
        if known is None or known.cause != cause:
            text = "loop %s: %s %s failed and is skipped; trying again in %.0f s"
            self._logger.error(text, self._loop, kind, item, wait, exc_info=error)
