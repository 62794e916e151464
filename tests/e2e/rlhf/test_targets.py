"""The project of ``det rlhf init`` runs here and on a cluster, where it is paused, and ends with the same bits."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.support.compiler import IDLE_COMPILER, python_path
from tests.support.live_cluster import LiveCluster
from tests.support.live_trials import Experiment
from tests.support.rlhf_project import GATE, gated_project

# One worker runs all of them on one cluster.
pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("hydra"), pytest.mark.budget(60, "starts sets of processes")]

Run = Callable[..., str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return gated_project(tmp_path / "project")


@pytest.fixture
def run(cluster: LiveCluster, folder: Path, tmp_path: Path) -> Run:
    """Returns a function that runs Python in the project and returns its output."""
    environ = {**cluster.client_environment, "GATES": str(tmp_path), "PYTHONPATH": python_path()}

    def run_words(*words: str, code: int = 0) -> str:
        ended = subprocess.run(
            [sys.executable, *words],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=100,
            check=False,
        )
        assert ended.returncode == code, ended.stdout
        return ended.stdout

    return run_words


def weights(checkpoints: Path) -> dict[str, torch.Tensor]:
    """Returns the parameters in the only checkpoint of a folder."""
    (path,) = checkpoints.glob("*/workers/line-0.pt")
    return dict(torch.load(path, weights_only=True)["training"]["module"])


@pytest.mark.long  # test_whole_set.py ends like the straight run
def test_a_trial_that_is_paused_on_the_cluster_ends_with_the_bits_of_one_that_ran_here(
    cluster: LiveCluster, run: Run, folder: Path, tmp_path: Path
) -> None:
    output = run("-m", "apps.main", "start", "-e", "line", "-f", "first", "--mode", "local")
    assert output.startswith("line first runs on this machine: 4 workers on 2 slots")
    assert "finished" in run("-m", "determined_cli", "rlhf", "status", "line", "first")

    experiment = Experiment(cluster, 0, tmp_path)
    experiment.close_gate(GATE)
    words = ("--config", f"environment.environment_variables=[GATES={tmp_path}, PYTHONPATH={IDLE_COMPILER}]")
    output = run("-m", "determined_cli", "rlhf", "run", "line", "second", "--on", "det", *words)
    assert "line second runs on the cluster" in output
    match = re.search(r"Created experiment (\d+)", output)
    assert match is not None, output
    experiment.id = int(match[1])
    experiment.at_gate(GATE)
    experiment.do("pause")
    experiment.open_gate(GATE)
    experiment.left()
    experiment.do("activate")
    experiment.ended()

    experiment.nothing_left()
    assert sorted(each["totalBatches"] for each in experiment.reports("training")) == list(range(1, 33))
    found = cluster.session.get(f"/api/v1/experiments/{experiment.id}/checkpoints")["checkpoints"]
    newest = max(found, key=lambda each: each["metadata"]["steps_completed"])
    downloaded = tmp_path / "downloaded" / "newest"
    run("-m", "determined_cli", "checkpoint", "download", newest["uuid"], "-o", str(downloaded))
    here = weights(folder / "runs" / "line" / "first" / "checkpoints")
    on_cluster = weights(downloaded.parent)
    assert on_cluster.keys() == here.keys()
    for name, value in here.items():
        assert torch.equal(value, on_cluster[name]), name
    assert "completed" in run("-m", "determined_cli", "rlhf", "status", "line", "second")
