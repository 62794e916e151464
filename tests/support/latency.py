"""Measures how long requests wait while something else keeps the master busy."""

import contextlib
import http.client
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Latency:
    """Seconds that each request took, in their order."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def longest(self) -> float:
        return max(self.seconds)


def health_of(port: int) -> Callable[[], int]:
    """A request for ``/health`` over a connection of its own. It returns the status."""

    def ask() -> int:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=180)) as connection:
            connection.request("GET", "/health")
            return connection.getresponse().status

    return ask


@contextlib.contextmanager
def measured(ask: Callable[[], int], pause: float = 0.02) -> Iterator[Latency]:
    """Asks again and again from a thread until the block is left."""
    found = Latency()
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set() or not found.seconds:
            start = time.monotonic()
            try:
                status = ask()
            except Exception as error:
                found.failures.append(repr(error))
                return
            found.seconds.append(time.monotonic() - start)
            if status != 200:
                found.failures.append(f"status {status}")
            stop.wait(pause)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield found
    finally:
        stop.set()
        thread.join()
