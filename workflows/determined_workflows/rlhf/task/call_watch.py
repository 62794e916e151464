"""Tracks requests without a reply, and prints those that take long, as a hang or a rollout of an hour does."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Protocol

from determined_workflows.rlhf.task.array_tree import NamedArray
from determined_workflows.rlhf.task.streams import Reply

FIRST_SECONDS = 60.0


class Requests(Protocol):
    """What sends a request to one worker, for example a ``StreamServer``."""

    def request(
        self,
        worker: str,
        handle: str,
        data: NamedArray | None = None,
        **metadata: Any,  # noqa: ANN401  # JSON values
    ) -> "Future[Reply]": ...


class TrackedRequests:
    """Sends requests with the number of the step, and knows which have no reply.

    Args:
        requests: what sends them.
        clock: seconds that only grow.

    Attributes:
        step: steps completed; each request tells it to its worker.
    """

    def __init__(self, requests: Requests, clock: Callable[[], float] = time.monotonic) -> None:
        self._requests = requests
        self._clock = clock
        self._lock = threading.Lock()
        self._in_flight: dict[object, tuple[str, float]] = {}
        self.step = 0

    def request(
        self,
        worker: str,
        handle: str,
        data: NamedArray | None = None,
        **metadata: Any,  # noqa: ANN401  # JSON values
    ) -> "Future[Reply]":
        """Sends a request and returns the future of its reply."""
        mark = object()
        with self._lock:
            self._in_flight[mark] = (f"{worker}.{handle}", self._clock())

        def forget(_: object) -> None:
            with self._lock:
                self._in_flight.pop(mark, None)

        try:
            reply = self._requests.request(worker, handle, data, step=self.step, **metadata)
        except BaseException:
            forget(None)
            raise
        reply.add_done_callback(forget)
        return reply

    def in_flight(self) -> list[tuple[str, float]]:
        """Returns worker and call of each request without a reply, as ``actor[0].generate``, and its seconds."""
        with self._lock:
            return [(name, self._clock() - since) for name, since in self._in_flight.values()]


class CallWatch:
    """Context manager that prints the calls that have no reply for a minute, then for two, four, and so on.

    Args:
        in_flight: returns names and seconds of the calls without a reply.
        first: seconds after which a call is named first.
        tell: prints a line.
    """

    def __init__(
        self,
        in_flight: Callable[[], list[tuple[str, float]]],
        first: float = FIRST_SECONDS,
        tell: Callable[[str], object] = lambda text: print(text, flush=True),
    ) -> None:
        self._in_flight = in_flight
        self._first = first
        self._tell = tell
        self._next: dict[str, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="call-watch", daemon=True)

    def __enter__(self) -> "CallWatch":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def look(self) -> None:
        """Names the calls that are due."""
        calls: dict[str, float] = {}
        for name, seconds in self._in_flight():  # of equal ones the one that waits longest
            calls[name] = max(seconds, calls.get(name, 0.0))
        self._next = {name: limit for name, limit in self._next.items() if name in calls}
        for name, seconds in calls.items():
            limit = self._next.get(name, self._first)
            if seconds >= limit:
                self._tell(f"{name} has not answered for {seconds:.0f} s")
                while limit <= seconds:
                    limit *= 2
                self._next[name] = limit

    def _watch(self) -> None:
        while not self._ended.wait(self._first / 4):
            self.look()


def first_seconds(hang_timeout: str) -> float:
    """Returns when a call is named first: before the hang watchdog ends the trial, if it has one."""
    return min(FIRST_SECONDS, float(hang_timeout or 0) / 2) or FIRST_SECONDS
