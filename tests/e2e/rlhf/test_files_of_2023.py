"""Two experiment files in the style of 2023 run as they are, on the real DeepSpeed, with the ZeRO stage of that time."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.rlhf_sets import ROOT

PROJECT = ROOT / "tests" / "workflows" / "rlhf" / "project_of_2023"

MISSING = [name for name in ("transformers", "deepspeed") if importlib.util.find_spec(name) is None]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.long,
    pytest.mark.xdist_group("rlhf"),
    pytest.mark.skipif(bool(MISSING), reason=f"needs {MISSING}"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Returns the project with its datasets and interfaces; the home of its user has the models."""
    shutil.copytree(PROJECT, tmp_path / "project")
    shutil.copytree(Path(__file__).parent / "impl_of_2023", tmp_path / "project" / "impl")
    for name in ("data", "model", "utils"):
        shutil.copy(ROOT / "examples" / "rlhf" / "api" / f"{name}.py", tmp_path / "project" / "api")
    subprocess.run(
        [sys.executable, str(ROOT / "examples" / "rlhf" / "make_model.py"), str(tmp_path / "models" / "gpt2")],
        env={**os.environ, "PYTHONPATH": str(ROOT / "examples" / "rlhf")},
        check=True,
    )
    return tmp_path / "project"


@pytest.mark.budget(300, "starts up to eight processes with DeepSpeed")
@pytest.mark.parametrize(("experiment", "steps"), [("plot-sft", 12), ("plot-ppo", 16)])
def test_a_file_of_2023_trains_to_its_end(folder: Path, experiment: str, steps: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "determined_cli", "rlhf", "run", experiment, "first"],
        cwd=folder,
        env={**os.environ, "HOME": str(folder.parent), "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    run = folder / "runs" / experiment / "first"
    assert json.loads((run / "latest").read_text())["steps_completed"] == steps
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert len([line for line in lines if line["group"] == "training"]) == steps
    if experiment == "plot-sft":
        losses = [line["metrics"]["sft/loss"] for line in lines if line["group"] == "training"]
        assert losses[-1] < losses[0]
        assert [line for line in lines if line["group"] == "validation"]
