"""What the launch layers are tested with: the launchers' example on a cluster, and the same without one."""

import contextlib
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.support import live_processes
from tests.support.compiler import python_path
from tests.support.live_cluster import LiveCluster
from tests.support.live_models import E2E, ROOT, Model
from tests.support.live_trials import Experiment
from tests.support.rank_processes import free_port
from tests.support.waiting import wait_until

EXAMPLE = ROOT / "examples" / "launchers"
LAYERS = ("torch_distributed", "horovod", "deepspeed")
KINDS = ("class", "script")
RANK_VARIABLES = ("HOROVOD_RANK", "RANK")
_FINAL = re.compile(r"final parameters sha256: ([0-9a-f]{64})")
_VALIDATION = re.compile(r"validation_loss\W+([0-9.e+-]+)")


def trial_of(layer: str) -> str:
    return "deepspeed_trial" if layer == "deepspeed" else "pytorch_trial"


def what(layer: str, kind: str, *, held: bool = False) -> str:
    """What stands at the end of a layer's line."""
    if kind == "script":
        return "core_api.py"
    return f"--trial {'held' if held else trial_of(layer)}:SpiralTrial"


def launched(layer: str, kind: str = "class", *, slots: int, overrides: str = "", held: bool = False) -> Model:
    """The example under a layer. ``held``: with a gate before each batch of rank 0, ``train-N``."""
    line = f"python3 -m determined.launch.{layer} {overrides + ' -- ' if overrides else ''}"
    return entered(f"{line}{what(layer, kind, held=held)}", layer=layer, kind=kind, slots=slots)


def entered(entrypoint: str, *, slots: int, layer: str = "torch_distributed", kind: str = "class") -> Model:
    """The example with an entrypoint of the test's own."""
    config = yaml.safe_load((EXAMPLE / ("core_api.yaml" if kind == "script" else f"{layer}.yaml")).read_text())
    config |= {"entrypoint": entrypoint, "resources": {"slots_per_trial": slots}, "max_restarts": 1}
    files = tuple(path for path in EXAMPLE.iterdir() if path.suffix in (".py", ".json"))
    steps = int(config["hyperparameters"]["batches"])
    return Model(f"{layer}-{kind}", (*files, E2E / "gated" / "held.py"), "", config, steps, ())


@dataclass(frozen=True)
class Outcome:
    """``finals``: the hashes that the ranks printed; ``validation``: by steps."""

    finals: tuple[str, ...]
    validation: dict[int, float]


def outcome_of(experiment: Experiment) -> Outcome:
    """Of an experiment that has ended; fails where a step stands twice."""
    reports = [r for r in experiment.reports("validation") if not r["archived"]]
    steps = [r["totalBatches"] for r in reports]
    assert len(steps) == len(set(steps)), f"steps that stand twice: {sorted(steps)}"
    validation = {r["totalBatches"]: float(r["metrics"]["validation_metrics"]["validation_loss"]) for r in reports}
    return Outcome(finals(experiment.log), validation)


def finals(log: list[str]) -> tuple[str, ...]:
    return tuple(sorted(found for line in log for found in _FINAL.findall(line)))


BARE: dict[str, Callable[[int], list[str]]] = {
    "torch_distributed": lambda world: ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"],
    "horovod": lambda world: ["-m", "horovod.runner.launch", "--gloo", "-np", str(world), sys.executable],
    "deepspeed": lambda world: [
        *("-m", "deepspeed.launcher.runner", "--num_gpus", str(world)),
        # Its own choice is always the same, so two runs at once would meet at one store.
        *("--master_port", str(free_port())),
    ],
}
"""The launchers' own command lines, without us."""


def bare(layer: str, kind: str, world: int, seed: int, folder: Path) -> Outcome:
    """The example under the launcher's own command on this machine, without a cluster."""
    script = "core_api.py" if kind == "script" else f"{trial_of(layer)}.py"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
    environ |= {
        "PATH": f"{Path(sys.executable).parent}:{environ['PATH']}",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "PYTHONPATH": python_path(),
        "DS_ACCELERATOR": "cpu",
        "DET_TRIAL_SEED": str(seed),
        "XDG_DATA_HOME": str(folder),
    }
    argv = [sys.executable, *BARE[layer](world), script]
    text, code = _output_of(argv, environ)
    assert code == 0, text[-4000:]
    losses = [float(value) for value in _VALIDATION.findall(text)]
    return Outcome(finals(text.splitlines()), dict(enumerate(losses)))


def _output_of(argv: list[str], environ: dict[str, str]) -> tuple[str, int]:
    """Whatever happens, the launcher's process group ends with it: what is left would hold a port."""
    launcher = subprocess.Popen(
        argv,
        cwd=EXAMPLE,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with launcher:
        try:
            return "".join(launcher.communicate(timeout=180)), launcher.returncode
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(launcher.pid, signal.SIGKILL)


def seed_of(cluster: LiveCluster, experiment: Experiment) -> int:
    """The seed that a trial was given; a reference without a cluster gets the same."""
    with contextlib.closing(sqlite3.connect(cluster.data / "master.sqlite")) as connection:
        query = "SELECT seed FROM trials WHERE experiment_id = ?"
        return int(connection.execute(query, (experiment.id,)).fetchone()[0])


def workers(experiment: Experiment) -> dict[int, int]:
    """The pids of the processes that train, by rank: of each rank the last of its line, not the wrappers above it."""

    def look() -> dict[int, int] | None:
        found: dict[int, int] = {}
        for pid in experiment.processes:
            environ, command = live_processes.environ_of(pid), live_processes.command_of(pid)
            rank = next((environ[name] for name in RANK_VARIABLES if environ.get(name)), None)
            trains = "determined.exec.harness" in command or any(word.endswith("core_api.py") for word in command)
            if rank is not None and trains and not any("wrap_rank" in word for word in command):
                found.setdefault(int(rank), pid)
        return found or None

    return wait_until(look, what="a training process of any rank")


def command_lines(experiment: Experiment) -> list[list[str]]:
    """Of every living process of the trial, on whichever machine: they share this one's /proc. A launcher whose
    environment is bare carries no mark of the trial; it is below one that does."""
    found = set(experiment.processes)
    return [live_processes.command_of(pid) for pid in found | live_processes.below(found)]
