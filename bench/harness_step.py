"""A training step under our trainer with reporting, against the same step in a bare loop."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.figure import Figure, paired
from bench.servers import ROOT, Running, cluster
from bench.submitting import context_of, create, rows, until_completed

STEPS = 6000
EVERY = 100
BENCH = ROOT / "bench"
CONFIG = """
name: step
entrypoint: step_trial:StepTrial
hyperparameters: {{global_batch_size: 32, steps: {steps}, result: {result}}}
searcher: {{name: single, metric: loss, max_length: {{batches: {steps}}}}}
scheduling_unit: {every}
checkpoint_policy: none
environment: {{environment_variables: [OMP_NUM_THREADS=1]}}
"""


def figures(rounds: int = 9) -> list[Figure]:
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "data") as running:
        folder = Path(name)
        files = [
            BENCH / "trials" / "step_trial.py",
            *(BENCH / "reference" / file for file in ("clock.py", "digits_like.py")),
        ]
        context = context_of(folder / "context", files)
        ratios, note = paired(lambda: _ours(running, context, folder), lambda: _bare(folder), rounds)
    return [Figure("harness step, reporting on / bare loop", 1.10, ratios, note=f"{note} us")]


def _ours(running: Running, context: Path, folder: Path) -> float:
    """Returns the microseconds per step. Fails unless the master has the metrics afterwards."""
    result = folder / "ours"
    result.unlink(missing_ok=True)
    with running.session() as session:
        experiment, trial = create(session, CONFIG.format(steps=STEPS, every=EVERY, result=result), context)
        until_completed(session, experiment)
        steps = [int(row["totalBatches"]) for row in rows(session, trial, "training")]
    if sorted(steps) != list(range(EVERY, STEPS + 1, EVERY)):
        raise RuntimeError(f"the master holds reports of steps {steps[:5]}…, not one every {EVERY}")
    return float(result.read_text()) * 1e6


def _bare(folder: Path) -> float:
    result = folder / "bare"
    argv = [sys.executable, str(BENCH / "reference" / "bare_loop.py"), str(STEPS), str(result)]
    subprocess.run(argv, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return float(result.read_text()) * 1e6


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
