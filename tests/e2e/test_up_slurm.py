"""``det up --pool slurm`` on a login node whose Slurm is recording programs: what it listens on, says and refuses."""

import json
import os
import pwd
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.document_reader import reader_environment
from tests.support.document_runner import steps
from tests.support.slurm import Slurm
from tests.support.waiting import wait_until

from determined_launch import interfaces

pytestmark = [pytest.mark.e2e, pytest.mark.budget(40, "starts and stops a cluster")]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "pausing-scripts.md"
PARTITION = "PartitionName=gpu Default=YES MaxTime=UNLIMITED State=UP TotalNodes=2 TRES=cpu=8,node=2,gres/gpu=4"


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Yields the environment of a user of a login node, and ends the cluster."""
    variables = reader_environment(tmp_path)
    programs = tmp_path / "slurm"
    programs.mkdir()
    for name, script in {"scontrol": f"echo '{PARTITION}'", "squeue": "true", "sbatch": "exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{script}\n")
        (programs / name).chmod(0o755)
    variables["PATH"] = f"{programs}:{variables['PATH']}"
    yield variables
    det(variables, "down", "--now")


def det(environ: dict[str, str], *words: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "determined_cli", *words]
    return subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=120)


def own_address() -> str:
    found = [address for _, address in interfaces.all_addresses() if address.count(".") == 3]
    return next(address for address in found if not address.startswith("127."))


def test_a_cluster_on_a_login_node_listens_by_tls_and_says_who_connects_and_who_pays(
    environ: dict[str, str], tmp_path: Path
):
    me = pwd.getpwuid(os.geteuid()).pw_name
    host = own_address()
    refused = det(environ, "up", "--pool", "slurm", "--port", "0", "--detach")
    assert refused.returncode == 2
    assert f"--host {host} (" in refused.stderr
    started = det(environ, "up", "--pool", "slurm:gpu", "--slots", "2", "--host", host, "--port", "0", "--detach")
    assert started.returncode == 0, started.stderr
    assert started.stdout.startswith(f"ready: https://{host}:")
    assert "pool slurm: agents are jobs of Slurm in partition gpu with 2 GPUs each" in started.stderr
    assert f"charged to, {me}" in started.stderr
    log = (tmp_path / "data" / "detent" / "logs" / "up.log").read_text()
    assert "who can connect: every machine that reaches https://" in log
    token = tmp_path / "data" / "detent" / "agent-token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert json.loads(det(environ, "agent", "list", "--json").stdout) == []
    overview = det(environ, "job", "list")
    assert overview.returncode == 0, overview.stderr


@pytest.mark.long
@pytest.mark.budget(120, "trains in a job of a real Slurm")
def test_a_plain_script_in_a_job_of_slurm_is_paused_by_a_signal_and_continues(slurm: Slurm, tmp_path: Path):
    pytest.importorskip("determined_master.providers.slurm.slurm_provider")
    environ = reader_environment(tmp_path) | slurm.environment
    for step in steps(PAGE):
        if step.name and step.name.startswith("loop/"):
            (tmp_path / "loop").mkdir(exist_ok=True)
            (tmp_path / step.name).write_text(step.text)

    def log() -> str:
        return det(environ, "trial", "logs", "1").stdout

    try:
        up = det(environ, "up", "--pool", "slurm:compute", "--host", own_address(), "--port", "0", "--detach")
        assert up.returncode == 0, up.stderr
        det(environ, "experiment", "create", str(tmp_path / "loop" / "config.yaml"), str(tmp_path / "loop"))
        wait_until(lambda: "from step 0" in log(), within=60, what="the script runs in a job")
        det(environ, "experiment", "pause", "1")
        wait_until(lambda: "continues later" in log(), within=30, what="the script has left")
        det(environ, "experiment", "activate", "1")
        assert det(environ, "experiment", "wait", "1").returncode == 0
        assert "saved step" in log()
        assert "finished at step 60" in log()
        described = det(environ, "experiment", "describe", "1")
        assert "pool slurm: its jobs run as, and are charged to," in described.stderr
    finally:
        det(environ, "down", "--now")
