"""99th percentile of report latency during a large official-style create, against that without one. Needs ``wrk``."""

import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench.fake_agent import running_trials
from bench.figure import Figure, Skipped, paired
from bench.ingest import SCRIPT
from bench.servers import ROOT, Running, master, started

CONNECTIONS = 16
SECONDS = 5
MAX_SECONDS = 120
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


class Load:
    """Each run continues the step count of the previous one, so that every report has a new step."""

    def __init__(self, folder: Path, url: str, tokens: dict[int, str]) -> None:
        self._script = folder / "load.lua"
        self._url = url
        self._tokens = tokens
        self._from = 0

    def __call__(self, until: Callable[[], object] | None = None) -> float:
        """Returns the 99th percentile in milliseconds, over SECONDS or for as long as ``until`` blocks."""
        quoted = ",".join(f'"{token}"' for token in self._tokens.values())
        self._script.write_text(SCRIPT % (quoted, ",".join(map(str, self._tokens)), self._from))
        self._from += 10_000_000
        argv = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{MAX_SECONDS if until else SECONDS}s", "--timeout", "30s"]
        argv += ["--latency", "-s", str(self._script), self._url]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            if until is not None:
                try:
                    until()
                finally:
                    process.send_signal(signal.SIGINT)  # makes it print its results
            output = process.communicate()[0]
        match = re.search(r"99%\s+([\d.]+)(us|ms|s)\b", output)
        if match is None or "Non-2xx" in output:
            raise RuntimeError(output)
        return float(match.group(1)) * UNITS[match.group(2)]


def figures(rounds: int = 7) -> list[Figure]:
    if shutil.which("wrk") is None:
        raise Skipped("wrk is not installed; on Debian: apt install wrk")
    with (
        tempfile.TemporaryDirectory() as name,
        master(Path(name) / "data") as running,
        running.session() as admin,
        running_trials(running.url, running.data, admin, 4) as tokens,
    ):
        load = Load(Path(name), running.url, tokens)
        load()
        creates = Creates(running)
        ratios, note = paired(lambda: creates.beside(load), load, rounds)
    return [
        Figure(
            "report p99 under a 90 MB create / p99 alone",
            2.0,
            ratios,
            note=f"{note} ms; a create takes {statistics.median(creates.seconds):.1f} s meanwhile",
        )
    ]


class Creates:
    """Runs one official-style create in a process of its own, and the load for as long as it takes."""

    def __init__(self, running: Running) -> None:
        self._argv = [sys.executable, str(ROOT / "bench" / "reference" / "official_create.py"), running.url]
        self._argv.append(running.token)
        self.seconds: list[float] = []

    def beside(self, load: Load) -> float:
        with started(self._argv, "ready: ") as (_, process):
            return load(lambda: self._one(process))

    def _one(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise RuntimeError("the create was refused")
        self.seconds.append(float(answer))


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
