"""What a program sees in a task of the cluster."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from determined_launch.environment import RendezvousFacts
from determined_workflows.batch.cluster_task import run_in_task

FILE = Path(run_in_task.__file__)
BATCH = FILE.parents[1]
TWO = RendezvousFacts(("10.0.0.1", "10.0.0.2"), 1, (4, 4))
JOB: dict[str, Any] = {
    "command": "true",
    "arguments": "",
    "behind": "",
    "parameters": [],
    "variables": {"scratch_dir": "", "NNODES": "7", "NUM_TRAINERS": "7", "exp_name": "tiny"},
    "environment": {"NCCL_DEBUG": "WARN"},
    "is_distributed": True,
    "is_agent": False,
    "data": None,
    "workdir": ".",
}


def test_nodes_ranks_and_address_are_those_of_the_allocation(tmp_path: Path) -> None:
    environ = {"DET_TRIAL_ID": "12", "C10D_PORT": "29401"}
    found = run_in_task.variables(JOB, TWO, environ, str(tmp_path))
    assert found["NNODES"] == found["WORLD_SIZE"] == "2"
    assert (found["NUM_TRAINERS"], found["NODE_RANK"], found["JOBID"]) == ("4", "1", "12")
    assert found["MASTER_ADDR"] == found["MASTER_ADDRESS"] == "10.0.0.1"
    assert found["MASTER_PORT"] == found["PORT"] == "29401"
    assert (found["NCCL_DEBUG"], found["exp_name"], found["source_dir"]) == ("WARN", "tiny", str(tmp_path))


def test_a_job_of_one_process_has_no_rendezvous(tmp_path: Path) -> None:
    found = run_in_task.variables({**JOB, "is_distributed": False}, TWO, {}, str(tmp_path))
    assert not {"WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"} & set(found)


def test_machines_with_different_numbers_of_slots_are_refused_for_distributed_jobs() -> None:
    odd = RendezvousFacts(("10.0.0.1", "10.0.0.2"), 0, (3, 1))
    assert "have 3, 1 slots" in run_in_task.unequal(JOB, odd)
    assert run_in_task.unequal(JOB, TWO) == ""
    assert run_in_task.unequal({**JOB, "is_distributed": False}, odd) == ""


def test_scratch_is_the_shared_disk_or_a_folder_of_the_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_in_task.scratch(str(tmp_path), "/elsewhere") == str(tmp_path)
    own = run_in_task.scratch(str(tmp_path / "absent"), str(tmp_path))
    assert own == str(tmp_path / ".det_batch" / "scratch")
    assert "is not on this machine; scratch_dir is a folder of the task" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("", ""),
        ("values", "--lr=0.1 '--name=a b' --fast=True --slow=False"),
        ("flags", "--lr=0.1 '--name=a b' --fast"),
        ("bare", "lr=0.1 'name=a b' fast=True slow=False"),
    ],
)
def test_hyperparameters_become_arguments(form: str, expected: str) -> None:
    values = {"lr": 0.1, "name": "a b", "fast": True, "slow": False, "other": 1}
    job = {**JOB, "arguments": form, "parameters": ["lr", "name", "fast", "slow"]}
    assert run_in_task.arguments(job, {"DET_HPARAMS": json.dumps(values)}) == expected


def run(folder: Path, job: dict[str, Any], **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the program as a task does: from the project's folder."""
    task = folder / ".det_batch"
    task.mkdir()
    for path in (FILE, BATCH / "task" / "node_data.py", BATCH / "task" / "wandb_key.py"):
        shutil.copy(path, task)
    (task / "job.json").write_text(json.dumps(job))
    environ = {**os.environ, "HOME": str(folder), "DET_RUN_DIR": str(folder), **variables}
    argv = [sys.executable, str(task / "run_in_task.py")]
    return subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=30)


def test_the_command_is_read_by_bash_and_its_code_is_that_of_the_task(tmp_path: Path) -> None:
    (tmp_path / ".wandb_api_key").write_text("0123456789")
    command = 'echo "${exp_name} ${#WANDB_API_KEY} $(basename "$PWD")"; exit 3'
    done = run(tmp_path, {**JOB, "command": command, "is_distributed": False})
    assert done.returncode == 3, done.stderr
    assert f"tiny 10 {tmp_path.name}\n" in done.stdout
    assert "0123456789" not in done.stdout + done.stderr


def test_data_is_unpacked_below_the_tasks_folder_and_removed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one")
    archive = tmp_path / "data.tar"
    with tarfile.open(archive, "w") as file:
        file.add(tmp_path / "a.txt", arcname="data/a.txt")
    data = {"archive": str(archive), "digest": "0" * 64, "paths": ["data"]}
    command = 'cat "${SLURM_TMPDIR}/data/a.txt"; echo; echo "${SLURM_TMPDIR}"; exit 4'
    done = run(tmp_path, {**JOB, "command": command, "data": data})
    assert done.returncode == 4, done.stderr
    content, folder = done.stdout.splitlines()[-2:]
    assert content == "one"
    assert Path(folder).is_relative_to(tmp_path)
    assert not Path(folder).exists()


def test_data_on_a_disk_that_the_agent_does_not_see_is_refused_in_a_sentence(tmp_path: Path) -> None:
    data = {"archive": str(tmp_path / "absent.tar"), "digest": "0" * 64, "paths": ["data"]}
    done = run(tmp_path, {**JOB, "command": "echo ran", "data": data}, DET_AGENT_ID="agent-7")
    assert done.returncode == 2
    assert "\nran" not in done.stdout
    assert "which is not on the machine of agent agent-7: SCRATCH has to be a disk that agents share" in done.stderr


@pytest.mark.parametrize(("is_agent", "expected"), [(True, "-"), (False, "trial-")])
def test_the_agent_of_a_sweep_gives_its_run_an_id_of_its_own(tmp_path: Path, is_agent: bool, expected: str) -> None:
    job = {**JOB, "command": 'echo "run: ${WANDB_RUN_ID}-"', "is_agent": is_agent}
    done = run(tmp_path, job, WANDB_RUN_ID="trial")
    assert f"run: {expected}\n" in done.stdout
