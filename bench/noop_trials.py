"""Trials a second that only report one metric, against their three interpreter starts alone; CPU of the master a trial.

A trial starts three interpreters: the shim, the entry program, and the script, which imports ``determined.core``.
"""

import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench.figure import Figure, paired
from bench.recovery import master_of
from bench.servers import ROOT, cluster, cpu_seconds
from bench.submitting import context_of, create, until_completed

TRIALS, SLOTS = 40, 2
LOOK_SECONDS = 0.25
"""Between looks at the experiment, which cost the master CPU too."""
CONFIG = f"""
name: no-op trials
entrypoint: python3 noop.py
hyperparameters: {{x: {{type: categorical, vals: {list(range(TRIALS))}}}}}
searcher: {{name: grid, metric: loss, max_concurrent_trials: {2 * SLOTS}}}
"""
STARTS = ("pass", "pass", "import determined.core")
CPU_GOAL_MS = 10.0


def figures(rounds: int = 7) -> list[Figure]:
    cpu: list[float] = []
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "data", slots=SLOTS) as running:
        context = context_of(Path(name) / "context", [ROOT / "bench" / "trials" / "noop.py"])
        master = master_of(running.process.pid)

        def ours() -> float:
            before, began = cpu_seconds(master), time.perf_counter()
            with running.session() as session:
                experiment, _ = create(session, CONFIG, context)
                until_completed(session, experiment, pause=LOOK_SECONDS)
            rate = TRIALS / (time.perf_counter() - began)
            cpu.append(1000 * (cpu_seconds(master) - before) / TRIALS)
            return rate

        ours()
        cpu.clear()
        ratios, note = paired(ours, _starts_alone, rounds)
    return [
        Figure("no-op trials a second / their interpreter starts", 0.6, ratios, at_least=True, note=f"{note} a second"),
        Figure("CPU of the master a no-op trial", CPU_GOAL_MS, cpu, unit="ms"),
    ]


def _starts_alone() -> float:
    """Returns how many times a second three interpreters start one after the other, as many at once as there are
    slots."""

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
