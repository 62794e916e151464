"""Cost of compression: lists per second of the master's processor time with and without it, with /info in parallel.

Processor time is used because the master does nothing else and the clients decompress nothing. On an idle machine it
equals the rate.
"""

import http.client
import statistics
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from bench.figure import Figure, paired
from bench.servers import Running, cpu_seconds, master

EXPERIMENTS, CONNECTIONS, SECONDS = 60, 2, 2.0
PATH = "/api/v1/experiments?limit=50"
_CONFIG = (
    "name: run {} of the bench\nentrypoint: 'true'\nlabels: [bench]\nsearcher: {{name: single, metric: loss}}\n"
    "hyperparameters: {{lr: 0.001, layers: 4, optimizer: adam}}\n"
)


def figures(rounds: int = 9) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name, master(Path(name) / "data") as running, running.session() as session:
        for number in range(EXPERIMENTS):
            session.post("/api/v1/experiments", {"config": _CONFIG.format(number), "activate": False})
        packed, plain = Load(running, "gzip"), Load(running, "identity")
        packed(), plain()
        packed.waits.clear(), plain.waits.clear()
        ratios, note = paired(packed, plain, rounds)
        sizes = f"{packed.size / 1000:.0f} against {plain.size / 1000:.0f} kB an answer"
    waits = [_p99(mine) / _p99(theirs) for mine, theirs in zip(packed.waits, plain.waits, strict=True)]
    p99_of_each = [1000 * statistics.median(map(_p99, load.waits)) for load in (packed, plain)]
    return [
        Figure(
            "lists a second of the master's time, compressed / plain",
            0.9,
            ratios,
            at_least=True,
            note=f"{note}, {sizes}",
        ),
        Figure(
            "99th percentile of /info beside them",
            1.1,
            waits,
            note=f"{p99_of_each[0]:.1f} against {p99_of_each[1]:.1f} ms",
        ),
    ]


class Load:
    """Each call requests lists on several connections and /info on another. Answers are not decompressed."""

    def __init__(self, running: Running, encoding: str) -> None:
        self._address = urlsplit(running.url).netloc
        self._headers = {"Authorization": f"Bearer {running.token}", "Accept-Encoding": encoding}
        self._process = running.process.pid
        self.waits: list[list[float]] = []
        """Seconds of each request for /info, call by call."""
        self.size = 0

    def __call__(self) -> float:
        end, used = time.monotonic() + SECONDS, cpu_seconds(self._process)
        counts = [0] * CONNECTIONS
        threads = [threading.Thread(target=self._lists, args=(end, counts, at)) for at in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        self.waits.append(self._infos(end))
        for thread in threads:
            thread.join()
        return sum(counts) / (cpu_seconds(self._process) - used)

    def _lists(self, end: float, counts: list[int], index: int) -> None:
        connection = http.client.HTTPConnection(self._address)
        while time.monotonic() < end:
            self.size = len(self._answer(connection, PATH))
            counts[index] += 1
        connection.close()

    def _infos(self, end: float) -> list[float]:
        waits = []
        connection = http.client.HTTPConnection(self._address)
        while time.monotonic() < end:
            began = time.perf_counter()
            self._answer(connection, "/info")
            waits.append(time.perf_counter() - began)
            time.sleep(0.005)
        connection.close()
        return waits

    def _answer(self, connection: http.client.HTTPConnection, path: str) -> bytes:
        connection.request("GET", path, headers=self._headers)
        return connection.getresponse().read()


def _p99(waits: list[float]) -> float:
    return statistics.quantiles(waits, n=100)[98]


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
