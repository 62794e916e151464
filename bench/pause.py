"""From the request to pause to the free slot, against one step, one save and the exit of an interpreter."""

import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.figure import Figure, paired
from bench.servers import ROOT, Running, cluster, started
from bench.submitting import context_of, create, rows, until
from determined.client.session import Session

BENCH = ROOT / "bench"
SEED = 3
CONFIG = """
name: pause
entrypoint: pause_trial:PauseTrial
hyperparameters: {global_batch_size: 1}
searcher: {name: single, metric: loss, max_length: {batches: 1000000}}
scheduling_unit: 1
checkpoint_policy: none
environment: {environment_variables: [OMP_NUM_THREADS=1]}
"""


RANKS = """
resources: {slots_per_trial: 2}
"""
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
LAYER = "python3 -m determined.launch.torch_distributed --trial pause_trial:PauseTrial"


def figures(rounds: int = 9) -> list[Figure]:
    ratios, note = _ratios(CONFIG, [], rounds)
    alone = Figure("pause to free slot / step, save and exit", 1.5, ratios, note=f"{note} s")
    ratios, note = _ratios(CONFIG.replace("pause_trial:PauseTrial", LAYER) + RANKS, TORCHRUN, rounds)
    return [alone, Figure("the same, two ranks", 1.3, ratios, note=f"{note} s")]


def _ratios(config: str, launcher: Sequence[str], rounds: int) -> tuple[list[float], str]:
    moments = random.Random(SEED)
    with tempfile.TemporaryDirectory() as name, cluster(Path(name) / "data", slots=2) as running:
        context = context_of(Path(name) / "context", [BENCH / "trials" / "pause_trial.py"])
        with running.session() as session:
            experiment, trial = create(session, config, context)
            paused = Paused(session, experiment, trial, moments)
            paused()
            ratios, note = paired(paused, lambda: _bare(running, context, launcher), rounds)
            session.post(f"/api/v1/experiments/{experiment}/kill")
    return ratios, note


class Paused:
    """Each call lets the trial train some steps, pauses it at a random moment and leaves it paused."""

    def __init__(self, session: Session, experiment: int, trial: int, moments: random.Random) -> None:
        self._session = session
        self._experiment = f"/api/v1/experiments/{experiment}"
        self._trial = trial
        self._moments = moments

    def __call__(self) -> float:
        session = self._session
        before = self._steps()
        session.post(f"{self._experiment}/activate")
        until(lambda: self._steps() >= before + 3, "three more steps")
        time.sleep(self._moments.uniform(0, 0.1))
        start = time.perf_counter()
        session.post(f"{self._experiment}/pause")
        until(self._is_free, "the free slot", pause=0.02)  # more frequent polling would slow it down
        taken = time.perf_counter() - start
        checkpoints = session.get(f"{self._experiment}/checkpoints")["checkpoints"]
        saved = max(int(checkpoint["metadata"]["steps_completed"]) for checkpoint in checkpoints)
        if saved != self._steps():
            raise RuntimeError(f"the newest checkpoint is of step {saved}, the newest report of {self._steps()}")
        return taken

    def _steps(self) -> int:
        return max((int(row["totalBatches"]) for row in rows(self._session, self._trial, "training")), default=0)

    def _is_free(self) -> bool:
        agents = self._session.get("/api/v1/agents")["agents"]
        return all(slot["container"] is None for agent in agents for slot in agent["slots"].values())


def _bare(running: Running, context: Path, launcher: Sequence[str]) -> float:
    """Runs the reference on the file system of the cluster's checkpoints. Returns its seconds."""
    folder = running.data.parent / "bare"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    path = os.pathsep.join([str(context), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    argv = [sys.executable, *launcher, str(BENCH / "reference" / "step_save_exit.py"), str(folder)]
    with started(argv, "ready: ", environment) as (_, process):
        start = time.perf_counter()
        (folder / "go").touch()
        if process.wait(60):
            raise RuntimeError("the reference failed")
        return time.perf_counter() - start


if __name__ == "__main__":
    for figure in figures():
        print(figure.line())
