"""Runs the scripts of ``examples/hydra`` as their users do."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.compiler import python_path

EXAMPLE = Path(__file__).parents[3] / "examples" / "hydra"
EXPERIMENT = "+experiment=train_mLSTM7B_slimpajama6b.yaml"
KEPT = {name: value for name, value in os.environ.items() if not name.startswith(("DET_", "SLURM", "HYDRA"))}
ENVIRONMENT = {**KEPT, "PYTHONPATH": python_path()}


def script(
    name: str, *words: str, cwd: Path = EXAMPLE, project: Path = EXAMPLE, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a script of the example, or of a copy of it, in ``cwd`` and returns the completed process."""
    argv = [sys.executable, str(project / "scripts" / name), *words]
    return subprocess.run(
        argv, cwd=cwd, env=ENVIRONMENT | environment, capture_output=True, text=True, check=False, timeout=300
    )


def train(folder: Path, *overrides: str, **environment: str) -> Path:
    """Trains on plain Python with ``folder`` as the folder of the run, and returns it."""
    done = script("train_with_hydra.py", *overrides, f"hydra.run.dir={folder}", cwd=folder.parent, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def continued(run: Path, step: int, folder: Path, *words: str, **environment: str) -> Path:
    """Continues a run of the example by ``det hydra continue`` from a step, and returns the folder of the new run."""
    key = "hydra.sweep.dir" if "slurm" in words else "hydra.run.dir"
    argv = [sys.executable, "-m", "determined_cli", "hydra", "continue", str(run), f"--checkpoint_step={step}"]
    argv += ["--script", str(EXAMPLE / "scripts" / "train_with_hydra.py"), "--python", sys.executable]
    done = subprocess.run(
        [*argv, "--new_overrides", f"{key}={folder}", *words],
        env=ENVIRONMENT | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{run}: continues from step_{step}" in done.stderr
    return folder


def copied(folder: Path) -> Path:
    """Returns a copy of the example in a new folder."""
    return Path(shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("outputs", "__pycache__")))


def result(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return values


def metrics(folder: Path) -> list[dict[str, Any]]:
    """Returns the lines of the file logger of a run."""
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
