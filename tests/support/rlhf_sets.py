"""Runs of the tiny PPO in ``tests/e2e/rlhf/project`` off the cluster, and what they leave: states and batches."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tests.support.compiler import IDLE_COMPILER
from tests.support.waiting import wait_until

PROJECT = Path(__file__).parents[1] / "e2e" / "rlhf" / "project"
ROOT = Path(__file__).parents[2]
MODELS = ("actor", "critic", "ref", "reward")
STEPS = 8
_PACKAGES = ("launch", "harness", "workflows")


@dataclass
class SetRun:
    """One experiment in one folder: it may be started several times and continues where it was stored."""

    folder: Path
    experiment: str = "tiny-ppo"
    replicas: int = 1
    data_workers: int = 1

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.trace.mkdir()
        command = ["python3", "-m", "determined_workflows.rlhf.task.run_worker", self.experiment, "trial"]
        roles = [
            {"name": "master_worker", "command": command},
            {"name": "data_worker", "count": self.data_workers, "command": command},
            *(
                {"name": model, "count": self.replicas if model == "actor" else 1, "slots": 1, "command": command}
                for model in MODELS
            ),
        ]
        (self.folder / "roles.json").write_text(json.dumps({"preload": ["torch"], "roles": roles}))

    @property
    def trace(self) -> Path:
        return self.folder / "trace"

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace") if (self.folder / "log").exists() else ""

    def start(self, **variables: str) -> "subprocess.Popen[bytes]":
        """Starts the set; ``FAULT``, ``PACE`` and the recover mode are variables."""
        path = os.pathsep.join(map(str, (IDLE_COMPILER, *(ROOT / package for package in _PACKAGES))))
        environ = {name: value for name, value in os.environ.items() if not name.startswith("DET_")}
        environ |= {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TRACE": str(self.trace)}
        environ |= {"DETENT_RLHF_FOLDER": str(self.folder), **variables}
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "determined.launch.roles", str(self.folder / "roles.json")],
                cwd=PROJECT, env=environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

    def run(self, seconds: float = 120, **variables: str) -> int:
        """Runs the set to its end and returns its exit code."""
        process = self.start(**variables)
        try:
            return process.wait(seconds)
        finally:
            end(process)

    def run_and_pause(self, after_step: int) -> int:
        """Runs the set, sends Ctrl-C after a train step of the actor, and returns the exit code."""
        process = self.start(PACE="0.1")
        try:
            wait_until(
                lambda: f"train_step:{after_step} " in self.trace_of("actor-0"), within=30, what=lambda: self.log
            )
            process.send_signal(signal.SIGINT)
            return process.wait(60)
        finally:
            end(process)

    @property
    def latest(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "latest").read_text()))

    def checkpoint(self) -> Path:
        """Returns the folder of the newest checkpoint."""
        return self.folder / "checkpoints" / str(self.latest["uuid"])

    @staticmethod
    def weights(folder: Path, model: str) -> dict[str, torch.Tensor]:
        """Returns the weights that the interface of a model saved at the end of a run."""
        uuid = json.loads((folder / "latest").read_text())["uuid"]
        file = folder / "checkpoints" / str(uuid) / "models" / model / "weights.pt"
        return dict(torch.load(file, weights_only=True))

    def states(self) -> dict[str, Any]:
        """Returns the state of each worker in the newest checkpoint, without the clocks of the master worker."""
        found = {path.stem: torch.load(path, weights_only=True) for path in (self.checkpoint() / "workers").iterdir()}
        for clock in ("save", "evaluate"):
            del found["master_worker-0"][clock]
        return found

    def batches(self) -> dict[str, dict[str, str]]:
        """Returns the digest of each call's data by worker; a call that was repeated after a death counts once."""
        return {
            path.name: dict(line.split() for line in path.read_text().splitlines()) for path in self.trace.iterdir()
        }

    def trace_of(self, worker: str) -> str:
        """Returns the calls of a worker so far, a line each."""
        file = self.trace / worker
        return file.read_text() if file.exists() else ""


def end(process: "subprocess.Popen[bytes]") -> None:
    """Ends a set that still runs, with everything below it."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def difference(one: Any, other: Any, path: str = "") -> str:
    """Returns the path of the first difference of two nested states; empty if they are equal bit by bit."""
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        is_equal = one.dtype == other.dtype and one.shape == other.shape and torch.equal(one, other)
        return "" if is_equal else f"{path}: tensors differ"
    if isinstance(one, dict) and isinstance(other, dict):
        if one.keys() != other.keys():
            return f"{path}: keys {sorted(map(str, one.keys() ^ other.keys()))}"
        return next(filter(None, (difference(one[key], other[key], f"{path}/{key}") for key in one)), "")
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        if len(one) != len(other):
            return f"{path}: lengths {len(one)} and {len(other)}"
        pairs = enumerate(zip(one, other, strict=True))
        return next(filter(None, (difference(a, b, f"{path}/{index}") for index, (a, b) in pairs)), "")
    return "" if one == other and type(one) is type(other) else f"{path}: {one!r} and {other!r}"
