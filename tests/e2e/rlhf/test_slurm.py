"""``--mode slurm`` on a real Slurm: one job where no master answers, and a trial on a pool on Slurm where one does."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.compiler import python_path
from tests.support.live_trials import Experiment
from tests.support.rlhf_project import GATE, gated_project
from tests.support.slurm import Slurm
from tests.support.slurm_pool import slurm_pool
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.xdist_group("slurm")]
NOBODY = "http://127.0.0.1:9"


def run(folder: Path, environ: dict[str, str], *words: str, code: int = 0) -> str:
    argv = [sys.executable, "-m", *words]
    done = subprocess.run(
        argv, cwd=folder, env=environ, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    assert done.returncode == code, done.stdout
    return done.stdout


@pytest.mark.budget(60, "runs a job of a real Slurm")
def test_without_a_master_a_trial_is_one_job_of_slurm(slurm: Slurm, tmp_path: Path) -> None:
    folder = gated_project(tmp_path / "project")
    environ = {
        **os.environ,
        **slurm.environment,
        "DET_MASTER": NOBODY,
        "SCRATCH": str(tmp_path),
        "HOME": str(tmp_path),
        "GATES": str(tmp_path),
        "PYTHONPATH": python_path(),
    }
    words = ("-e", "line", "-f", "first", "--partition", "compute")
    output = run(folder, environ, "apps.main", "start", *words)
    assert output.startswith("line first runs as one job of Slurm, without a master: 4 workers on 2 slots")
    assert re.search(r"Submitted batch job \d+", output), output
    verb = ("determined_cli", "rlhf")

    def state() -> str:
        return run(folder, environ, *verb, "status", "line", "first")

    wait_until(lambda: not state().startswith(("pending", "running")), within=60, what="the job's end")
    assert state().startswith("completed"), run(folder, environ, *verb, "logs", "line", "first")
    assert "step 32 of 32" in run(folder, environ, *verb, "logs", "line", "first")
    assert (folder / "runs" / "line" / "first" / "latest").is_file()
    assert "waits or runs" in run(folder, environ, *verb, "stop", "line", "first", code=7)


def test_without_a_master_and_without_slurm_both_ways_are_named(tmp_path: Path) -> None:
    folder = gated_project(tmp_path / "project")
    environ = {**os.environ, "DET_MASTER": NOBODY, "HOME": str(tmp_path), "PATH": str(Path(sys.executable).parent)}
    output = run(folder, environ, "apps.main", "start", "-e", "line", "-f", "first", code=4)
    assert "a pool on Slurm" in output
    assert "sbatch on this machine" in output


@pytest.mark.long
@pytest.mark.budget(120, "starts a pilot and a set of processes on it")
def test_with_a_pool_on_slurm_a_trial_runs_there(slurm: Slurm, tmp_path: Path) -> None:
    folder = gated_project(tmp_path / "project")
    with slurm_pool(tmp_path / "c", slurm, slots_per_agent=2) as cluster:
        environ = cluster.client_environment
        experiment = Experiment(cluster, 0, tmp_path)
        experiment.close_gate(GATE)
        words = ("--on", "slurm", "--config", f"environment.environment_variables=[GATES={tmp_path}]")
        output = run(folder, environ, "determined_cli", "rlhf", "run", "line", "first", *words)
        assert "runs on the cluster, pool default of" in output
        match = re.search(r"Created experiment (\d+)", output)
        assert match is not None, output
        experiment.id = int(match[1])
        experiment.at_gate(GATE)
        experiment.do("pause")
        experiment.open_gate(GATE)
        experiment.left()
        experiment.do("activate")
        experiment.ended()
        assert sorted(each["totalBatches"] for each in experiment.reports("training")) == list(range(1, 33))
