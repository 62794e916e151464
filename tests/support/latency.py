"""Measures how long requests take while the master is busy with something else."""

import contextlib
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]


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


@contextlib.contextmanager
def measured_apart(
    port: int, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None, body: str = ""
) -> Iterator[Latency]:
    """Like ``measured``, from a process of its own; the latency is known after the block. ``body``: each ``#`` in it is
    the number of the request."""
    request = {
        "port": port,
        "method": method,
        "path": path,
        "headers": dict(headers or {}),
        "body": body,
        "pause": 0.02,
    }
    argv = [sys.executable, "-m", "tests.support.latency_probe", json.dumps(request)]
    latency = Latency()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield latency
        finally:
            output, _ = process.communicate("")
    found = json.loads(output)
    latency.seconds, latency.failures = found["seconds"], found["failures"]
