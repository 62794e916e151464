"""From `kill -9` of the master below `det up` to its next answer, against a cold start of the master alone."""

import http.client
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from bench.figure import Figure, paired
from bench.servers import cluster, started
from bench.submitting import until

MAX_SECONDS = 3.0


def figures(rounds: int = 7) -> list[Figure]:
    taken: list[float] = []
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "up") as running:
        port = int(running.url.rsplit(":", 1)[1])

        def back() -> float:
            taken.append(_back(master_of(running.process.pid), port))
            return taken[-1]

        ratios, note = paired(back, lambda: cold_start(Path(name) / "alone"), rounds)
    seconds = ", ".join(f"{duration:.2f}" for duration in taken)
    return [
        Figure("back after kill -9 of the master / its start", 2.0, ratios, note=f"{note} s"),
        Figure("back after kill -9 of the master", MAX_SECONDS, taken, unit="s", note=f"{seconds}"),
    ]


def master_of(supervisor: int) -> int:
    """Returns the pid of the master of this `det up`."""

    def look() -> int:
        children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
        pids = [int(pid) for pid in children if b"determined_master" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        return pids[0] if pids else 0

    return until(look, "a master")


def _back(master: int, port: int) -> float:
    start = time.perf_counter()
    os.kill(master, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{master}/fd/0").exists(), "the end of the old master", pause=0.005)
    until(lambda: is_healthy(port), "an answer", pause=0.02)
    return time.perf_counter() - start


def is_healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def cold_start(data: Path) -> float:
    """Returns the seconds until the first answer of a master whose database exists. The first call creates the
    database."""
    argv = [sys.executable, "-P", "-m", "determined_master", "--data", str(data), "--port", "0", "--announce"]
    if not data.exists():
        with started(argv, "ready: "):
            pass
    start = time.perf_counter()
    with started(argv, "ready: ") as (url, _process):
        until(lambda: is_healthy(int(url.rsplit(":", 1)[1])), "an answer", pause=0.02)
        return time.perf_counter() - start


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
