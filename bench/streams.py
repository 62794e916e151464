"""Streams into tasks: throughput, the echo of a key, and what one costs pauses beside it."""

import os
import pty
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from bench.figure import Figure, paired
from bench.reference.sshd import Sshd
from bench.servers import ROOT, Running, cluster, started
from bench.submitting import context_of, create, until

CONFIG = """
name: streams
entrypoint: python3 serving_script.py
searcher: {name: single, metric: loss, max_length: {batches: 1000}}
max_restarts: 0
resources: {slots_per_trial: 0}
"""
KEYS = 50
_FETCHING = """
import sys, urllib.request
while True:
    with urllib.request.urlopen(sys.argv[1], timeout=120) as answer:
        while answer.read(1 << 20): pass
"""
ECHO_FACTOR, ECHO_SECONDS = 1.5, 0.005


def figures(rounds: int = 7) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "data") as running:
        context = context_of(Path(name) / "context", [ROOT / "bench" / "trials" / "serving_script.py"])
        with running.session() as session:
            _, trial = create(session, CONFIG, context)
            port = _port_of(running, trial)
            return [
                _throughput(running, trial, port, rounds),
                _echo(running, trial, rounds),
                _beside(running, trial, port, context, rounds),
            ]


def _throughput(running: Running, trial: int, port: int, rounds: int) -> Figure:
    argv = [sys.executable, "-m", "bench.reference.http_proxy", f"http://127.0.0.1:{port}"]
    with started(argv, "ready: ") as (proxy, _), _forwarded(running, trial, port) as place:
        _fetch(f"{proxy}/100"), _fetch(f"{place}/100")
        ratios, note = paired(lambda: 1 / _fetch(f"{place}/100"), lambda: 1 / _fetch(f"{proxy}/100"), rounds)
    return Figure(
        "100 MB through a stream / a bare proxy of Starlette and httpx", 0.5, ratios, at_least=True, note=f"{note} /s"
    )


def _echo(running: Running, trial: int, rounds: int) -> Figure:
    with tempfile.TemporaryDirectory() as name, Sshd(Path(name)) as sshd:
        ours = [sys.executable, "-m", "determined_cli", "trial", "exec", "-it", str(trial), "--", "cat"]
        with (
            _Keys(ours, _client(running)) as mine,
            _Keys([sshd.client[0], "-tt", *sshd.client[1:], "cat"], dict(os.environ)) as theirs,
        ):
            pairs = [(mine.median(), theirs.median()) for _ in range(rounds)]
    ratios = [a / (ECHO_FACTOR * b + ECHO_SECONDS) for a, b in pairs]
    note = f"{statistics.median(a for a, _ in pairs) * 1000:.1f} against {statistics.median(b for _, b in pairs) * 1000:.1f} ms"
    return Figure("echo of a key / 1.5 times OpenSSH on loopback and 5 ms", 1, ratios, note=note)


def _beside(running: Running, trial: int, port: int, context: Path, rounds: int) -> Figure:
    """Pauses of another trial, while 1 GB after the other passes through a stream and without."""
    with running.session() as session, _forwarded(running, trial, port) as place:
        experiment, _ = create(session, CONFIG, context)
        paused = _Paused(running, experiment)
        paused()

        def beside() -> float:
            # In a process of its own: a thread of this one would delay the calls that are measured.
            with subprocess.Popen([sys.executable, "-c", _FETCHING, f"{place}/1000"]) as fetching:
                try:
                    return paused()
                finally:
                    fetching.kill()

        ratios, note = paired(beside, paused, rounds)
        session.post(f"/api/v1/experiments/{experiment}/kill")
    return Figure("a pause beside a stream of 1 GB / alone", 1.2, ratios, note=f"{note} s")


class _Paused:
    """Each call activates a trial, pauses it, and returns the seconds until it has left."""

    def __init__(self, running: Running, experiment: int) -> None:
        self._session = running.session()
        self._path = f"/api/v1/experiments/{experiment}"

    def __call__(self) -> float:
        trial = int(self._session.get(f"{self._path}/trials")["trials"][0]["id"])
        self._session.post(f"{self._path}/activate")
        until(lambda: self._state(trial) == "RUNNING", "the trial runs")
        time.sleep(0.5)  # its poll for a preemption is open
        start = time.time()
        self._session.post(f"{self._path}/pause")
        until(lambda: self._state(trial) == "PAUSED", "the free slot", pause=0.02)
        # By the master's clock, which is this machine's: the questions above are 20 ms apart.
        attempts = self._session.get(f"/detent/trials/{trial}/attempts")["attempts"]
        return max(datetime.fromisoformat(str(each["endedAt"])).timestamp() for each in attempts) - start

    def _state(self, trial: int) -> str:
        return str(self._session.get(f"/detent/trials/{trial}/progress")["state"])


class _Keys:
    """A program on a terminal that sends each key back."""

    def __init__(self, argv: Sequence[str], environment: dict[str, str]) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.execvpe(argv[0], list(argv), environment)

    def __enter__(self) -> "_Keys":
        time.sleep(3)  # it connects
        os.write(self._terminal, b"begin\r")
        self._until(b"begin\r\nbegin\r\n")
        return self

    def __exit__(self, *_: object) -> None:
        os.write(self._terminal, b"\r\x04")
        os.close(self._terminal)
        os.waitpid(self._pid, 0)

    def median(self) -> float:
        seconds = []
        for _ in range(KEYS):
            start = time.perf_counter()
            os.write(self._terminal, b"x")
            self._until(b"x")
            seconds.append(time.perf_counter() - start)
            time.sleep(0.01)
        return statistics.median(seconds)

    def _until(self, text: bytes) -> None:
        seen = b""
        while text not in seen:
            seen += os.read(self._terminal, 4096)


@contextmanager
def _forwarded(running: Running, trial: int, port: int) -> Iterator[str]:
    """Yields the address at which a port of a trial is forwarded."""
    argv = [sys.executable, "-m", "determined_cli", "trial", "port-forward", str(trial), f":{port}"]
    with started(argv, "Forwarding ", _client(running)) as (line, _):
        yield f"http://{line.split()[0]}"


def _client(running: Running) -> dict[str, str]:
    return {
        **os.environ,
        "DET_MASTER": running.url,
        "DET_USER": "admin",
        "DET_USER_TOKEN": running.token,
        "TERM": "xterm",
    }


def _fetch(url: str) -> float:
    """Returns the seconds of a download."""
    start = time.perf_counter()
    with urllib.request.urlopen(url, timeout=120) as answer:
        while answer.read(1 << 20):
            pass
    return time.perf_counter() - start


def _port_of(running: Running, trial: int) -> int:
    with running.session() as session:

        def look() -> int:
            lines = [str(line["log"]) for line in session.stream(f"/api/v1/trials/{trial}/logs")]
            return next((int(line.split()[-1]) for line in lines if "port " in line), 0)

        return until(look, "its port")


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
