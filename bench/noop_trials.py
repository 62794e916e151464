"""Trials per second that only report one metric, against their three interpreter starts alone; the master's CPU per
trial.

A trial starts three interpreters: the shim, the entry program, and the script, which imports ``determined.core``.
"""

import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from bench.figure import Figure, paired
from bench.recovery import master_of
from bench.servers import ROOT, cluster, cpu_seconds
from bench.submitting import context_of, create, until, until_completed

TRIALS, SLOTS = 120, 2
CONFIG = f"""
name: no-op trials
entrypoint: python3 noop.py
hyperparameters: {{x: {{type: categorical, vals: {list(range(TRIALS))}}}}}
searcher: {{name: grid, metric: loss, max_concurrent_trials: {2 * SLOTS}}}
"""
STARTS = ("pass", "pass", "import determined.core")
MIN_RATE, MAX_CPU_MS = 0.45, 25.0


def figures(rounds: int = 7) -> list[Figure]:
    cpu: list[float] = []
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "data", slots=SLOTS) as running:
        context = context_of(Path(name) / "context", [ROOT / "bench" / "trials" / "noop.py"])
        master = master_of(running.process.pid)

        def ours() -> float:
            before, began = cpu_seconds(master), time.perf_counter()
            with running.session() as session:
                experiment, _ = create(session, CONFIG, context)
                _until_ended(running.data, experiment)
                until_completed(session, experiment)
            rate = TRIALS / (time.perf_counter() - began)
            cpu.append(1000 * (cpu_seconds(master) - before) / TRIALS)
            return rate

        ours()
        cpu.clear()
        ratios, note = paired(ours, _starts_alone, rounds)
    return [
        Figure(
            "no-op trials a second / their interpreter starts", MIN_RATE, ratios, at_least=True, note=f"{note} a second"
        ),
        Figure("CPU of the master a no-op trial", MAX_CPU_MS, cpu, unit="ms"),
    ]


def _until_ended(data: Path, experiment: int) -> None:
    """Polls the master's database, since requests would add CPU time to the master."""
    with closing(sqlite3.connect(f"file:{data / 'master.sqlite'}?mode=ro", uri=True)) as database:
        query = "SELECT end_time FROM experiments WHERE id = ?"
        until(lambda: database.execute(query, [experiment]).fetchone()[0], f"the end of experiment {experiment}")


def _starts_alone() -> float:
    """Returns how many times per second three interpreters start one after another, with as many in parallel as there
    are slots."""

    def three(_: int) -> None:
        for program in STARTS:
            subprocess.run([sys.executable, "-c", program], check=True)

    began = time.perf_counter()
    with ThreadPoolExecutor(SLOTS) as pool:
        list(pool.map(three, range(TRIALS)))
    return TRIALS / (time.perf_counter() - began)


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
