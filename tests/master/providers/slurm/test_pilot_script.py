"""The batch script of a pilot: what it gives to tasks and how it starts agents."""

import os
import subprocess
from pathlib import Path

import pytest

from determined_master.providers.slurm.pilot_script import ENVIRONMENT, Pilot, text

SHOW = ("bash", "-c", 'printf "%s\\n" "$@" > "$OUT/words"; env -0 > "$OUT/agent"', "agent")
SRUN = '#!/bin/bash\nprintf "%s\\n" "$@" > "$OUT/srun"\nwhile [[ "$1" == --* ]]; do shift; done\nSLURM_NODEID=1 exec "$@"\n'


@pytest.fixture
def run(tmp_path: Path):
    """Returns a function that runs the script of a pilot and returns the exit code."""
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)

    def run(**values) -> int:
        basics = {"agent_id": "a b", "pool": "p", "program": SHOW, "master": "http://m:1", "token_file": Path("/t/k")}
        pilot = Pilot(**basics | {"folder": tmp_path, "without_master_seconds": 600.0} | values)
        (tmp_path / "pilot.sh").write_text(text(pilot))
        path = f"{tmp_path}:{os.environ['PATH']}"
        environment = {"PATH": path, "OUT": str(tmp_path), "SLURM_JOB_ID": "550", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(["bash", tmp_path / "pilot.sh"], env=environment, capture_output=True, text=True)
        print(done.stderr)
        return done.returncode

    return run


def words(folder: Path, name: str = "words") -> list[str]:
    return (folder / name).read_text().splitlines()


def variables(file: Path) -> dict[str, str]:
    return dict(each.split("=", 1) for each in file.read_text().split("\0") if each)


def test_the_agent_gets_its_name_token_pool_and_slots(run, tmp_path):
    assert run(slots=2, certificate_options=["--master-cert-file", "/t/c"]) == 0
    assert words(tmp_path) == [
        *("--master", "http://m:1", "--token-file", "/t/k", "--master-cert-file", "/t/c", "--pool", "p"),
        *("--tasks-as-me", "--slots", "2", "--id", "a b", "--data", f"/tmp/detent-{os.getuid()}/a b"),
    ]
    found = variables(tmp_path / "agent")
    assert (found["DET_SLURM_JOB_ID"], found["DET_AGENT_PILOT"]) == ("550", "true")
    assert found["DET_AGENT_END_WITHOUT_MASTER_SECONDS"] == "600"


def test_a_pilot_with_devices_offers_no_cpu_slots(run, tmp_path):
    run(slots=None)
    assert "--slots" not in words(tmp_path)


def test_set_up_lines_reach_the_tasks_file_and_leave_the_agent_as_it_was(run, tmp_path):
    setup = ["export CUDA_HOME=/cuda OMP_NUM_THREADS=8", "unset SLURM_JOB_ID", 'LINES="a\nb"; export LINES']
    assert run(setup=setup, environment={"NCCL_DEBUG": "it's"}) == 0
    agent, tasks = variables(tmp_path / "agent"), variables(tmp_path / ENVIRONMENT)
    assert (tasks["CUDA_HOME"], tasks["OMP_NUM_THREADS"], tasks["NCCL_DEBUG"]) == ("/cuda", "8", "it's")
    assert tasks["LINES"] == "a\nb"
    assert (agent["OMP_NUM_THREADS"], agent["SLURM_JOB_ID"]) == ("1", "550")
    assert not {"CUDA_HOME", "NCCL_DEBUG", "LINES"} & agent.keys()
    assert agent["DET_AGENT_SETUP_ENVIRONMENT"] == str(tmp_path / ENVIRONMENT)


def test_a_limit_that_a_set_up_line_sets_counts_for_the_agent(run, tmp_path):
    run(setup=["ulimit -n 77"], program=("bash", "-c", 'ulimit -n > "$OUT/words"'))
    assert words(tmp_path) == ["77"]


def test_a_set_up_line_that_fails_ends_the_job_before_the_agent(run, tmp_path):
    assert run(setup=["false", "true"]) == 1
    assert not (tmp_path / "words").exists()


def test_each_node_of_a_job_of_several_gets_an_agent_that_ignores_term_until_it_handles_it(run, tmp_path):
    ignored = ("bash", "-c", 'printf "%s\\n" "$@" > "$OUT/words"; trap > "$OUT/traps"', "agent")
    assert run(nodes=3, slots=1, program=ignored) == 0
    srun = words(tmp_path, "srun")
    assert srun[:6] == [
        *("--nodes=3", "--ntasks=3", "--ntasks-per-node=1", "--kill-on-bad-exit=0", "--wait=0", "--input=none"),
    ]
    assert words(tmp_path)[-4:] == ["--id", "a b-1", "--data", f"/tmp/detent-{os.getuid()}/a b-1"]
    assert "SIGTERM" in (tmp_path / "traps").read_text()


def test_the_umask_of_the_tasks_is_that_of_the_user(run, tmp_path):
    run(umask=0o027, program=("bash", "-c", 'umask > "$OUT/words"'))
    assert words(tmp_path) == ["0027"]
