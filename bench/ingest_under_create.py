"""The tail of report latency while a large official-style create runs, against the tail without one; needs ``wrk``."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figure import Figure, Skipped, paired
from bench.ingest import SCRIPT
from bench.played_agent import playing
from bench.servers import ROOT, Running, master, started

CONNECTIONS = 16
SECONDS = 5
WARM_SECONDS = 1
UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


class Load:
    """Each run goes on counting where the last one ended, so that every report is of a new step."""

    def __init__(self, folder: Path, url: str, tokens: dict[int, str]) -> None:
        self._script = folder / "load.lua"
        self._url = url
        self._tokens = tokens
        self._from = 0

    def __call__(self, seconds: int = SECONDS) -> float:
        """Milliseconds: the 99th percentile."""
        quoted = ",".join(f'"{token}"' for token in self._tokens.values())
        self._script.write_text(SCRIPT % (quoted, ",".join(map(str, self._tokens)), self._from))
        self._from += 10_000_000
        argv = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "30s", "--latency"]
        argv += ["-s", str(self._script), self._url]
        output = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
        found = re.search(r"99%\s+([\d.]+)(us|ms|s)\b", output)
        if found is None or "Non-2xx" in output:
            raise RuntimeError(output)
        return float(found.group(1)) * UNITS[found.group(2)]


def figures(rounds: int = 7) -> list[Figure]:
    if shutil.which("wrk") is None:
        raise Skipped("wrk is not installed; on Debian: apt install wrk")
    with (
        tempfile.TemporaryDirectory() as name,
        master(Path(name) / "data") as running,
        running.session() as admin,
        playing(running.url, running.data, admin, 4) as tokens,
    ):
        load = Load(Path(name), running.url, tokens)
        load(WARM_SECONDS)
        creates = Creates(running)
        ratios, note = paired(lambda: creates.beside(load), load, rounds)
    return [
        Figure(
            "report p99 under a 90 MB create / p99 alone",
            3.0,
            ratios,
            note=f"{note} ms; {creates.done} creates of {creates.seconds / max(1, creates.done):.1f} s",
        )
    ]


class Creates:
    """One official-style create after the other, by a process of its own, for as long as something else runs."""

    def __init__(self, running: Running) -> None:
        self._argv = [sys.executable, str(ROOT / "bench" / "reference" / "official_create.py"), running.url]
        self._argv.append(running.token)
        self.done = 0
        self.seconds = 0.0

    def beside(self, load: Load) -> float:
        with started(self._argv, "creating: ") as (_, process):
            tail = load()
            if process.poll() is not None:
                raise RuntimeError("the creates ended early")
            process.terminate()
            assert process.stdout is not None
            times = [float(line) for line in process.stdout.read().split()]
        if not times:
            raise RuntimeError(f"no create was answered within {SECONDS} s")
        self.done += len(times)
        self.seconds += sum(times)
        return tail


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
