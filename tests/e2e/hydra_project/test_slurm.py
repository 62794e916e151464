"""The Hydra example on a real Slurm with the real launcher: the same loss, setup lines, and failing jobs."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.hydra_project.project import ENVIRONMENT, EXAMPLE, EXPERIMENT, continued, result, script, train
from tests.support.slurm import Slurm
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.torch,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(90, "runs jobs of a real Slurm"),
]

MULTIRUN = ("--multirun", "hydra/launcher=slurm_launcher")


@pytest.fixture
def idle(slurm: Slurm) -> Iterator[Slurm]:
    """Yields a Slurm and cancels the jobs of this test at its end."""
    yield slurm
    slurm.cancel_all()


def test_a_slurm_job_has_the_loss_of_plain_python_and_the_variables_of_setup(
    idle: Slurm, tmp_path: Path, plain_run: Path
) -> None:
    """Setup lines that are not shell commands, as in files of real users, do not stop the job."""
    text = tmp_path / "exported.txt"
    text.write_bytes((EXAMPLE / "data" / "sample.txt").read_bytes())
    lines = ("gpu-bind=none", "wait-all-nodes=1", "time=2-00:00:00", "exclusive", f"export SAMPLE_TEXT={text}")
    setup = "[" + ",".join(f"'{line}'" for line in lines) + "]"
    words = (EXPERIMENT, "data.path=${oc.env:SAMPLE_TEXT}", f"hydra.launcher.setup={setup}")
    done = script(
        "train_with_hydra.py", *MULTIRUN, *words, f"hydra.sweep.dir={tmp_path}/sweep", cwd=tmp_path, **idle.environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert result(tmp_path / "sweep" / "0") == result(plain_run)
    (log,) = (tmp_path / "sweep" / ".submitit").glob("*/*_log.err")
    assert "exclusive: command not found" in log.read_text()


def test_a_run_is_continued_on_slurm_with_the_same_loss(idle: Slurm, tmp_path: Path, plain_run: Path) -> None:
    sweep = continued(plain_run, 30, tmp_path / "sweep", "--on", "slurm", **idle.environment)
    assert list((sweep / ".submitit").glob("*/*_log.out"))
    assert result(sweep / "0") == result(plain_run)


def test_failed_and_killed_slurm_jobs_are_reported_while_others_run(idle: Slurm, tmp_path: Path) -> None:
    """The first job, on which the launcher waits, runs forever. The second fails, and the third is killed."""
    sweep = tmp_path / "sweep"
    argv = [sys.executable, str(EXAMPLE / "scripts" / "train_with_hydra.py"), *MULTIRUN, "num_epochs=1000000"]
    argv += ["num_train_steps=1000000", "model.num_heads=1,3,2", f"hydra.sweep.dir={sweep}"]
    output = tmp_path / "output.txt"
    with output.open("w") as file:
        submitter = subprocess.Popen(argv, cwd=tmp_path, env=ENVIRONMENT | idle.environment, stdout=file, stderr=file)
    try:
        failed = "error: job #1 failed: ConfigError: model.num_heads: 3 does not divide model.embedding_dim 32"
        wait_until(lambda: failed in output.read_text(), what=output.read_text)
        assert submitter.poll() is None
        _kill(idle, sweep, 2)
        wait_until(lambda: "_2 ended without a result: " in output.read_text(), what=output.read_text)
        assert submitter.poll() is None
        _kill(idle, sweep, 0)
        assert submitter.wait(timeout=120) == 1
    finally:
        submitter.kill()
        submitter.wait()
    assert "_0 ended without a result: " in output.read_text()
    assert "Traceback" not in output.read_text()


def _kill(slurm: Slurm, sweep: Path, number: int) -> None:
    """Kills the training of a job after it has begun."""
    wait_until((sweep / str(number) / "metrics.jsonl").exists, what=f"job {number} trains")
    (folder,) = (sweep / ".submitit").glob(f"*_{number}")
    for pid in wait_until(lambda: slurm.pids(folder.name), what=f"a process of job {folder.name}"):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.long
def test_tasks_of_a_slurm_job_train_together_like_processes_of_this_machine(idle: Slurm, tmp_path: Path) -> None:
    """Uses two nodes and the resources that a job on GPUs requests."""
    launcher = ("nodes=2", "tasks_per_node=2", "cpus_per_task=28", "gpus_per_node=8")
    words = (EXPERIMENT, "batch_size_per_device=2", *(f"hydra.launcher.{setting}" for setting in launcher))
    done = script(
        "train_with_hydra.py", *MULTIRUN, *words, f"hydra.sweep.dir={tmp_path}/sweep", cwd=tmp_path, **idle.environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    plain = train(tmp_path / "plain", EXPERIMENT, "batch_size_per_device=2", "parallel.devices=4")
    assert result(tmp_path / "sweep" / "0") == result(plain)
