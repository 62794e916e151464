"""Measures how long requests take while the master is busy with something else."""

import contextlib
import http.client
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Latency:
    """Durations of the requests in seconds, in order."""

    seconds: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def longest(self) -> float:
        return max(self.seconds)


def health_of(port: int) -> Callable[[], int]:
    """Returns a function that requests ``/health`` over a new connection and returns the status."""

    def ask() -> int:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=180)) as connection:
            connection.request("GET", "/health")
            return connection.getresponse().status

    return ask


@contextlib.contextmanager
def measured(ask: Callable[[], int], pause: float = 0.02) -> Iterator[Latency]:
    """Sends requests from a thread repeatedly until the block ends."""
    latency = Latency()
    stop = threading.Event()

    def loop() -> None:
        while not stop.is_set() or not latency.seconds:
            start = time.monotonic()
            try:
                status = ask()
            except Exception as error:
                latency.failures.append(repr(error))
                return
            latency.seconds.append(time.monotonic() - start)
            if status != 200:
                latency.failures.append(f"status {status}")
            stop.wait(pause)

    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield latency
    finally:
        stop.set()
        thread.join()
