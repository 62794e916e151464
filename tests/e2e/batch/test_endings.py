"""How jobs of ``det batch`` end on a real Slurm: exit codes, data on the nodes, stop, retry, requeue."""

import json
import os
import re
import subprocess

import pytest
from tests.support.batch_project import BatchProject
from tests.support.small_disk import small_disk
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.xdist_group("slurm"),
    pytest.mark.budget(60, "runs jobs of a real Slurm"),
]

FAILING = """\
import os, sys, time
if os.environ["SLURM_PROCID"] == "1":
    sys.exit(3)
time.sleep(60)
"""
"""Rank 1 fails; the others would wait for it."""
STUBBORN = """\
import os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.signal(number, signal.SIG_IGN)
data = open(os.path.join(os.environ["SLURM_TMPDIR"], "data/a.txt")).read()
print("ready in", os.environ["SLURM_TMPDIR"], data, flush=True)
time.sleep(60)
"""
SAVING = """\
import os, signal, sys, time
place = os.path.join(os.environ["scratch_dir"], "saved.txt")
def save(number, frame):
    open(place, "w").write("saved")
    sys.exit(9)
signal.signal(signal.SIGUSR1, save)
if os.path.exists(place):
    print("went on", flush=True)
    sys.exit(0)
print("ready", flush=True)
time.sleep(60)
"""


def test_a_failing_rank_ends_the_job_with_its_code(project: BatchProject) -> None:
    """Row of the table: failing rank. The data is removed on the nodes of the ranks that Slurm kills then."""
    (project.scratch_dir / "data").mkdir(parents=True)
    (project.scratch_dir / "data" / "a.txt").write_text("one")
    (project.root / "fail.py").write_text(FAILING)
    project.command("python fail.py")
    job = project.run("-j", "distributed", "-W", "lightning", "-N", "2", "-g", "1", "--data", "data")
    assert not project.node_folder(job).exists()
    state = project.state(job)
    assert (state["state"], state["exit_code"]) == ("FAILED", 3)
    assert state["detail"] == "rank 1 on node2 failed first, exit code 3"
    assert "ExitCode=3:0" in project.slurm.command("scontrol", "show", "job", job)


@pytest.mark.torch
def test_a_failing_worker_of_torchrun_is_named_with_its_rank_and_code(project: BatchProject) -> None:
    """Row of the table: failing rank. torchrun ends with 1, whatever its worker ended with."""
    project.add_launcher("torchrun")
    (project.root / "fail.py").write_text(FAILING.replace("SLURM_PROCID", "RANK").replace("exit(3)", "exit(7)"))
    meeting = "--rdzv_id=${JOBID} --rdzv_backend=c10d --rdzv_endpoint=${MASTER_ADDRESS}:${PORT}"
    project.command(f"torchrun --nproc_per_node=1 --nnodes=2 {meeting} --max_restarts=0 fail.py")
    job = project.run("-j", "distributed", "-W", "torchrun", "-N", "2", "-g", "1")
    state = project.state(job)
    assert (state["state"], state["exit_code"]) == ("FAILED", 7), project.output(job)
    assert state["detail"].startswith("rank 1 on node")
    assert state["detail"].endswith(" failed first, exit code 7")


def test_a_missing_launcher_is_a_failure_with_code_127(project: BatchProject) -> None:
    """Row of the table: failing rank (torchrun missing, 127)."""
    project.command("torchrun --standalone main.py")
    job = project.run("-j", "distributed", "-W", "torchrun")
    assert project.state(job)["exit_code"] == 127
    assert "torchrun: command not found" in project.output(job)


def test_data_is_where_it_was_typed_and_removed_after_success_and_failure(project: BatchProject) -> None:
    """Rows of the table: --data a b; changed data; SLURM_TMPDIR unset."""
    for name, text in (("data/a.txt", "one"), ("sets/b/c.txt", "two")):
        path = project.scratch_dir / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    project.command("cat ${SLURM_TMPDIR}/data/a.txt ${SLURM_TMPDIR}/sets/b/c.txt && echo in ${SLURM_TMPDIR} && exit 5")
    job = project.run("--data", "data", "sets/b")
    assert f"onetwoin {project.node_folder(job)}" in project.output(job).replace("\n", "")
    assert project.state(job)["exit_code"] == 5
    assert not project.node_folder(job).exists()
    (project.scratch_dir / "data" / "a.txt").write_text("new")
    project.command("srun cat ${SLURM_TMPDIR}/data/a.txt")
    changed = project.run("--data", "data", "sets/b")
    assert "new" in project.output(changed)
    assert not project.node_folder(changed).exists()
    assert len(list((project.scratch_dir / ".batch" / "data").glob("*.tar"))) == 2


def test_data_is_removed_from_below_the_sites_folder_and_nothing_else_is(project: BatchProject) -> None:
    disk = project.folder / "own_disk"
    disk.mkdir()
    (disk / "others.txt").write_text("stays")
    (project.scratch_dir / "data").mkdir(parents=True)
    (project.scratch_dir / "data" / "a.txt").write_text("one")
    project.variables["SLURM_TMPDIR"] = str(disk)
    project.command("cat ${SLURM_TMPDIR}/data/a.txt; ls ${SLURM_TMPDIR}")
    job = project.run("-d", "data")
    assert "one" in project.output(job)
    assert [path.name for path in disk.iterdir()] == ["others.txt"]


def test_data_that_does_not_fit_on_the_disk_of_a_node_fails_the_job_and_nothing_is_left(project: BatchProject) -> None:
    (project.scratch_dir / "data").mkdir(parents=True)
    (project.scratch_dir / "data" / "a.bin").write_bytes(os.urandom(3 << 20))
    with small_disk(project.folder / "small", "1m") as disk:
        (project.root / "hpc_files" / "SITE.yaml").write_text(f"node_scratch: {disk.path}\n")
        job = project.run("--data", "data")
        assert not [path for path in disk.path.rglob("*") if path.is_file()]
    sentence = f"the disk of this node is full: {disk.path}/detent-{os.getuid()}/{job} has no room for the data"
    state = project.state(job)
    assert (state["state"], state["exit_code"]) == ("FAILED", 1)
    assert re.fullmatch(rf"rank 0 on node\d failed first, exit code 1: {re.escape(sentence)}", state["detail"])
    assert not project.seen(job)
    assert re.search(rf"^det batch: node\d: {re.escape(sentence)}$", project.output(job), re.MULTILINE)


def test_data_of_a_cancelled_job_that_ignores_signals_is_removed(project: BatchProject) -> None:
    """Row of the table: SLURM_TMPDIR unset; after a time limit (Slurm ends a job in the same way)."""
    (project.scratch_dir / "data").mkdir(parents=True)
    (project.scratch_dir / "data" / "a.txt").write_text("one")
    (project.root / "stubborn.py").write_text(STUBBORN)
    project.command("python stubborn.py")
    job = project.submit("--data", "data", "-t", "10")
    wait_until(lambda: "ready in" in project.output(job))
    assert (project.node_folder(job) / "data" / "a.txt").exists()
    done = project.det("stop", job)
    assert done.returncode == 0, done.stderr
    project.wait(job)
    assert not project.node_folder(job).exists()
    assert project.state(job)["state"] == "CANCELLED"


@pytest.mark.long
@pytest.mark.budget(180, "waits for a time limit of one minute")
def test_data_of_a_job_at_its_time_limit_is_removed(project: BatchProject) -> None:
    """Row of the table: after a time limit."""
    (project.scratch_dir / "data").mkdir(parents=True)
    (project.scratch_dir / "data" / "a.txt").write_text("one")
    (project.root / "stubborn.py").write_text(STUBBORN.replace("time.sleep(60)", "time.sleep(600)"))
    project.command("python stubborn.py")
    job = project.run("-j", "distributed", "-W", "lightning", "-N", "2", "-g", "1", "--data", "data", "-t", "1")
    assert not project.node_folder(job).exists()
    assert project.state(job)["state"] == "TIMEOUT"
    assert json.loads(next((project.outputs / ".batch").glob(f"*/ends/{job}/rank-0-1.json")).read_text())["code"] == 137


def test_a_job_whose_node_fails_is_named_and_retried(project: BatchProject) -> None:
    project.command("echo ready; [ -e ${scratch_dir}/mended ] || exec sleep 60")
    job = project.submit("--", "--no-requeue", "--nodelist=node2")
    wait_until(lambda: "ready" in project.output(job))
    try:
        project.slurm.fail_node("node2")
        project.wait(job)
        assert project.state(job)["state"] == "NODE_FAIL"
    finally:
        project.slurm.mend_node("node2")
    (project.scratch_dir / "mended").touch()
    done = project.det("retry", job)
    assert done.returncode == 0, done.stderr
    again = done.stdout.split()[-1]
    project.wait(again)
    assert project.state(again)["state"] == "COMPLETED"


def test_retry_submits_the_failed_elements_of_a_sweep_alone(project: BatchProject) -> None:
    program = (
        '#!/bin/bash\necho run $SLURM_ARRAY_TASK_ID; [ $SLURM_ARRAY_TASK_ID != 2 ] || [ -e "$scratch_dir/mended" ]\n'
    )
    project.add_program("wandb", program)
    project.command("wandb agent --count 1 me/project/SWEEP_ID\n")
    job = project.run("-j", "sweep", "-g", "0", "--sweep-id", "ab12", "--count", "3")
    listed = json.loads(project.det("status", job, "--json").stdout)[0]["jobs"]
    assert [each["state"] for each in listed] == ["COMPLETED", "FAILED", "COMPLETED"]
    (project.scratch_dir / "mended").touch()
    done = project.det("retry", job)
    assert done.returncode == 0, done.stderr
    again = done.stdout.split()[-1]
    project.wait(again)
    listed = json.loads(project.det("status", job, "--json").stdout)[0]["jobs"]
    assert [each["state"] for each in listed] == ["COMPLETED"] * 3
    assert [path.name for path in project.outputs.glob(f"*_{again}_*.out")] == [f"sweep_experiment_{again}_2.out"]
    refused = project.det("retry", job)
    assert refused.returncode == 7
    assert "has failed" in refused.stderr


def test_a_job_near_its_limit_is_queued_again_and_goes_on(project: BatchProject) -> None:
    (project.root / "save.py").write_text(SAVING)
    project.command("python save.py")
    job = project.submit("--requeue")
    wait_until(lambda: "ready" in project.output(job))
    assert "--signal=USR1@90" in next((project.outputs / ".batch").glob("*/job.sh")).read_text()
    # What Slurm sends 90 s before the limit.
    project.slurm.command("scancel", "--signal=USR1", job)
    # Its start cannot be changed before its first run is over for Slurm.
    log = project.slurm.folder / "log" / "slurmctld.log"
    wait_until(lambda: f"Requeuing JobId={job}\n" in log.read_text())
    # Two minutes later by default. Nodes refuse a job that they ended within the same second.
    project.slurm.command("scontrol", "update", f"JobId={job}", "StartTime=now+3")
    wait_until(lambda: "went on" in project.output(job), what=lambda: project.output(job))
    project.wait(job)
    assert "ready" in project.output(job)  # appended
    assert project.state(job)["state"] == "COMPLETED"


def test_logs_follow_a_job_to_its_end(project: BatchProject) -> None:
    project.command("echo begun; while [ ! -e ${scratch_dir}/go ]; do sleep 0.1; done; echo over; exit 4")
    job = project.submit()
    argv = ["det", "batch", "logs", "-f", job]
    with subprocess.Popen(
        argv, cwd=project.root, env=project.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as follower:
        assert follower.stdout is not None
        lines = iter(follower.stdout.readline, "")
        assert any(line == "begun\n" for line in lines)
        (project.scratch_dir / "go").touch()
        assert "over\n" in list(lines)
        assert follower.wait() == 4


def test_somebody_elses_job_with_the_id_of_a_lost_one_is_neither_shown_nor_cancelled(project: BatchProject) -> None:
    """slurmctld that is killed after a submission gives the id away again."""
    project.command("sleep 60")
    lost = project.submit()
    project.slurm.command("scancel", "--full", "--signal=KILL", lost)
    project.wait(lost)
    foreign = project.slurm.command("sbatch", "--parsable", "--wrap", "sleep 60").strip()
    (record,) = (project.outputs / ".batch").glob("*/record.json")
    record.write_text(record.read_text().replace(f'"id": "{lost}"', f'"id": "{foreign}"'))
    assert project.state(foreign)["state"] == "LOST"
    refused = project.det("stop", foreign)
    assert refused.returncode == 7, refused.stderr
    assert project.slurm.command("squeue", "--noheader", "--jobs", foreign, "--format=%T").strip() in (
        "PENDING",
        "RUNNING",
    )
