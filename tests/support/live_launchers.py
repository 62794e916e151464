"""Runs the launchers' example under the launch layers on a cluster, and under the bare launchers without one."""

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
from tests.support.free_ports import free_port
from tests.support.live_cluster import LiveCluster
from tests.support.live_models import E2E, ROOT, Model
from tests.support.live_trials import Experiment
from tests.support.waiting import wait_until

EXAMPLE = ROOT / "examples" / "launchers"
LAYERS = ("torch_distributed", "horovod", "deepspeed")
KINDS = ("class", "script")
RANK_VARIABLES = ("HOROVOD_RANK", "RANK")
_FINAL = re.compile(r"final parameters sha256: ([0-9a-f]{64})")
_VALIDATION = re.compile(r"validation_loss\W+([0-9.e+-]+)")


def trial_of(layer: str) -> str:
    return "deepspeed_trial" if layer == "deepspeed" else "pytorch_trial"


def layer_arguments(layer: str, kind: str, *, held: bool = False) -> str:
    """Returns the last words of a layer's command line."""
    if kind == "script":
        return "core_api.py"
    return f"--trial {'held' if held else trial_of(layer)}:SpiralTrial"


def example_under(layer: str, kind: str = "class", *, slots: int, overrides: str = "", held: bool = False) -> Model:
    """Returns the example under a layer. ``held``: with a gate ``train-N`` before each batch of rank 0."""
    line = f"python3 -m determined.launch.{layer} {overrides + ' -- ' if overrides else ''}"
    return example_with_entrypoint(
        f"{line}{layer_arguments(layer, kind, held=held)}", layer=layer, kind=kind, slots=slots
    )


def example_with_entrypoint(
    entrypoint: str, *, slots: int, layer: str = "torch_distributed", kind: str = "class"
) -> Model:
    """Returns the example with another entrypoint."""
    config = yaml.safe_load((EXAMPLE / ("core_api.yaml" if kind == "script" else f"{layer}.yaml")).read_text())
    config |= {"entrypoint": entrypoint, "resources": {"slots_per_trial": slots}, "max_restarts": 1}
    files = tuple(path for path in EXAMPLE.iterdir() if path.suffix in (".py", ".json"))
    steps = int(config["hyperparameters"]["batches"])
    return Model(f"{layer}-{kind}", (*files, E2E / "gated" / "held.py"), "", config, steps, ())


@dataclass(frozen=True)
class Outcome:
    """``finals``: the hashes that the ranks printed; ``validation``: the loss by steps."""

    finals: tuple[str, ...]
    validation: dict[int, float]


def outcome_of(experiment: Experiment) -> Outcome:
    """Returns the outcome of an ended experiment. Fails if a step is reported twice."""
    reports = [r for r in experiment.reports("validation") if not r["archived"]]
    steps = [r["totalBatches"] for r in reports]
    assert len(steps) == len(set(steps)), f"steps that are reported twice: {sorted(steps)}"
    validation = {r["totalBatches"]: float(r["metrics"]["validation_metrics"]["validation_loss"]) for r in reports}
    return Outcome(finals(experiment.log), validation)


def finals(log: list[str]) -> tuple[str, ...]:
    return tuple(sorted(digest for line in log for digest in _FINAL.findall(line)))


NOUNS_WITHOUT_VERBS: dict[str, Callable[[int], list[str]]] = {
    "torch_distributed": lambda world: ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"],
    "horovod": lambda world: ["-m", "horovod.runner.launch", "--gloo", "-np", str(world), sys.executable],
    "deepspeed": lambda world: [
        *("-m", "deepspeed.launcher.runner", "--num_gpus", str(world)),
        # The launcher's default address is always the same, so two concurrent runs would share a store.
        *("--master_port", str(free_port())),
    ],
}
"""The launchers' own command lines, without our layers."""


def run_bare_launcher(layer: str, kind: str, world: int, seed: int, folder: Path) -> Outcome:
    """Runs the example under the launcher's own command on this machine, without a cluster."""
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
    argv = [sys.executable, *NOUNS_WITHOUT_VERBS[layer](world), script]
    text, code = _output_of(argv, environ)
    assert code == 0, text[-4000:]
    losses = [float(value) for value in _VALIDATION.findall(text)]
    return Outcome(finals(text.splitlines()), dict(enumerate(losses)))


def _output_of(argv: list[str], environ: dict[str, str]) -> tuple[str, int]:
    """Runs a launcher and kills its process group at the end: a leftover process would hold a port."""
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
    """Returns the seed of an experiment's trial, for a reference run without a cluster."""
    with contextlib.closing(sqlite3.connect(cluster.data / "master.sqlite")) as connection:
        query = "SELECT seed FROM trials WHERE experiment_id = ?"
        return int(connection.execute(query, (experiment.id,)).fetchone()[0])


def workers(experiment: Experiment) -> dict[int, int]:
    """Returns the pids of the training processes by rank: the last process of each rank's chain, not its wrappers."""

    def look() -> dict[int, int] | None:
        pids: dict[int, int] = {}
        for pid in experiment.processes:
            environ, command = live_processes.environ_of(pid), live_processes.command_of(pid)
            rank = next((environ[name] for name in RANK_VARIABLES if environ.get(name)), None)
            trains = "determined.exec.harness" in command or any(word.endswith("core_api.py") for word in command)
            if rank is not None and trains and not any("wrap_rank" in word for word in command):
                pids.setdefault(int(rank), pid)
        return pids or None

    return wait_until(look, what="a training process of any rank")


def command_lines(experiment: Experiment) -> list[list[str]]:
    """Returns the command lines of every living process of the trial, on every machine, since all share /proc. A
    launcher with an empty environment is found as a descendant of a process with one."""
    marked = set(experiment.processes)
    return [live_processes.command_of(pid) for pid in marked | live_processes.below(marked)]
