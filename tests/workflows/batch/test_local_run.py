"""A submission on this machine: its outputs, states, time limit, and its end by signals."""

import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.recorded_jobs import project_in
from tests.support.waiting import wait_until

from determined.errors import ConfigError, Conflict
from determined_launch.pid_lock import PidLock
from determined_workflows.batch import job_record, local_run, on_local, settings, status
from determined_workflows.batch.job_record import JobRecord
from determined_workflows.batch.project import Project
from determined_workflows.batch.submission import Request
from determined_workflows.site_profile import SiteProfile

DISTRIBUTED: dict[str, Any] = {"kind": "distributed", "launcher": "lightning", "gpus": "2"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return project_in(tmp_path)


def run(
    project: Project,
    command: str,
    *,
    count: int | None = None,
    parallel: int | None = None,
    site: SiteProfile = SiteProfile(),
    **flags: object,
) -> int:
    """Runs a command as ``det batch run --on local`` does, and returns its code."""
    found, _ = settings.read(flags)
    sweep_id = "ab12" if found.kind == "sweep" else None
    site = replace(site, node_scratch=str(project.scratch))
    asked = Request(found, project, command, ["det"], (), site, sweep_id=sweep_id, count=count, max_parallel=parallel)
    return on_local.run(on_local.prepare(asked, lambda _line: None), lambda _line: None)


def newest(project: Project) -> JobRecord:
    return job_record.find(project, None)


def states(record: JobRecord) -> list[str]:
    _, found = status.observe(record, local_run.queue(record))
    return [each.state for each in found]


def test_the_code_is_that_of_the_program_and_the_output_has_the_documents_name(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(project, "echo ${JOBID} ${exp_name}; exit 7", exp_name="tiny") == 7
    output = (project.outputs / "standard_tiny_local-1.out").read_text()
    assert "\n1 tiny\n" in output
    assert capfd.readouterr().out == output
    assert states(newest(project)) == ["FAILED"]
    assert run(project, "true") == 0
    assert states(newest(project)) == ["COMPLETED"]
    assert (project.outputs / "standard_experiment_local-2.out").exists()


def test_a_distributed_job_has_the_general_purpose_form_of_one_machine(project: Project) -> None:
    command = "srun env | grep -E '^(MASTER_|WORLD_SIZE|NODE_RANK|NNODES|NUM_TRAINERS|PORT)' | sort"
    assert run(project, command, **DISTRIBUTED) == 0
    (output,) = project.outputs.glob(f"lightning_experiment_{os.uname().nodename}_local-1.out")
    seen = dict(line.split("=", 1) for line in output.read_text().splitlines() if "=" in line and "srun" not in line)
    assert (seen["WORLD_SIZE"], seen["NODE_RANK"], seen["NNODES"], seen["NUM_TRAINERS"]) == ("1", "0", "1", "2")
    assert seen["MASTER_ADDR"] == "127.0.0.1"
    assert seen["MASTER_PORT"] == seen["PORT"]
    assert "FINISHED DISTRIBUTED JOB" in output.read_text()


def test_the_allocation_of_slurm_around_it_is_not_that_of_the_program(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_NTASKS", "4")
    monkeypatch.setenv("SLURM_NODEID", "3")
    assert run(project, 'srun echo "${!SLURM_@} ${NODE_RANK}"', **DISTRIBUTED) == 0
    (output,) = project.outputs.glob("*.out")
    assert "\nSLURM_TMPDIR 0\n" in output.read_text()


def test_data_is_unpacked_and_removed(project: Project) -> None:
    (project.scratch_dir / "data").mkdir()
    (project.scratch_dir / "data" / "a.txt").write_text("one")
    assert run(project, "cat ${SLURM_TMPDIR}/data/a.txt; exit 3", data=["data"]) == 3
    assert "one" in (project.outputs / "standard_experiment_local-1.out").read_text()
    assert not list(project.scratch.glob("detent-*/*"))


def test_the_runs_of_a_sweep_end_on_their_own_and_a_failed_one_runs_again(project: Project) -> None:
    wandb = project.root / "wandb"
    wandb.write_text('#!/bin/bash\n[ -e "$scratch_dir/mended" ] || [ "$DETENT_ELEMENT" != 2 ] || exit 5\n')
    wandb.chmod(0o755)
    command = "./wandb agent --count 1 a/b/SWEEP_ID"
    assert run(project, command, kind="sweep", gpus="0", count=3, parallel=2) == 5
    record = newest(project)
    assert states(record) == ["COMPLETED", "FAILED", "COMPLETED"]
    names = sorted(path.name for path in project.outputs.glob("*.out"))
    assert names == [f"sweep_experiment_local-1_{element}.out" for element in (1, 2, 3)]
    (project.scratch_dir / "mended").touch()
    assert on_local.retry(record, lambda _line: None) == 0
    assert states(newest(project)) == ["COMPLETED"] * 3
    assert (project.outputs / "sweep_experiment_local-2_2.out").exists()
    with pytest.raises(Conflict, match="has failed: COMPLETED"):
        on_local.retry(newest(project), lambda _line: None)


def test_a_job_is_ended_at_its_time_limit(project: Project) -> None:
    assert run(project, "sleep 60", time="0:1") == 128 + signal.SIGTERM
    assert states(newest(project)) == ["TIMEOUT"]
    assert "the time limit is over" in (project.outputs / "standard_experiment_local-1.out").read_text()


def test_an_image_runs_by_a_program_that_records_its_arguments(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = tmp_path / "bin" / "apptainer"
    recording.parent.mkdir()
    recording.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    recording.chmod(0o755)
    monkeypatch.setenv("PATH", f"{recording.parent}:{os.environ['PATH']}")
    (project.root / "a.sif").touch()
    assert run(project, "python main.py ${exp_name}", container="a.sif") == 0
    lines = (project.outputs / "standard_experiment_local-1.out").read_text().splitlines()
    assert lines[-4:] == [str(project.root / "a.sif"), "bash", "-c", "python main.py ${exp_name}"]
    assert lines[1] == "exec"


def test_set_up_lines_and_variables_of_the_site_reach_the_program(project: Project) -> None:
    site = SiteProfile(setup=("export FROM_SETUP=yes",), environment={"FROM_SITE": "a b"})
    assert run(project, 'echo "${FROM_SETUP} ${FROM_SITE}"', site=site) == 0
    assert "\nyes a b\n" in (project.outputs / "standard_experiment_local-1.out").read_text()


def test_the_script_runs_again_without_det(project: Project) -> None:
    run(project, "echo again")
    done = subprocess.run(["bash", newest(project).script], capture_output=True, text=True, check=True, timeout=30)
    assert "again" in done.stdout


def started(project: Project, command: str, stderr: int = subprocess.DEVNULL) -> "subprocess.Popen[str]":
    """Starts ``det batch run --on local`` in a process of its own."""
    (project.files / "experiment_configurations.txt").write_text(command)
    argv = [sys.executable, "-m", "determined_cli", "batch", "submit", "--on", "local", "-y"]
    environ = {**os.environ, "SCRATCH": str(project.scratch)}
    return subprocess.Popen(argv, cwd=project.root, env=environ, stdout=subprocess.PIPE, stderr=stderr, text=True)


IGNORING = pytest.param(
    "trap '' TERM; ",
    marks=[pytest.mark.long, pytest.mark.budget(20, "waits for the grace period of a program that ignores signals")],
)


@pytest.mark.parametrize("trap", ["", IGNORING])
def test_a_stopped_job_ends_with_its_children(project: Project, trap: str) -> None:
    pids = project.scratch_dir / "pid"
    with started(project, f"{trap}(sleep 97 & echo $! > ${{scratch_dir}}/pid; wait); sleep 60") as process:
        wait_until(lambda: pids.exists() and pids.read_text(), what="the program runs")
        record = newest(project)
        assert states(record) == ["RUNNING"]
        local_run.stop(record)
        assert process.wait(5) == 128 + signal.SIGTERM
    assert states(record) == ["CANCELLED"]
    assert not Path("/proc", pids.read_text().strip()).exists()
    with pytest.raises(Conflict, match=r"nothing of .* runs"):
        local_run.stop(record)


def test_a_stopped_program_gets_time_to_end_by_itself(project: Project) -> None:
    ready, ended = project.scratch_dir / "ready", project.scratch_dir / "ended"
    command = "trap 'echo saved > ${scratch_dir}/ended; exit 3' TERM; touch ${scratch_dir}/ready; sleep 60 & wait"
    with started(project, command) as process:
        wait_until(ready.exists, what="the program runs")
        local_run.stop(newest(project))
        assert process.wait(5) == 128 + signal.SIGTERM
    assert ended.read_text() == "saved\n"


def test_a_submission_on_another_machine_is_shown_with_it_and_not_stopped_here(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(project, "exit 1")
    record = newest(project)
    monkeypatch.setattr(socket, "gethostname", lambda: "node7")
    with PidLock(record.folder / local_run.LOCK):
        monkeypatch.undo()
        monkeypatch.setattr(os, "kill", lambda *_: pytest.fail("a process of this machine gets a signal"))
        (record.ends_of("local-1") / local_run.STATE).write_text(local_run.RUNNING)
        assert [each.nodes for each in local_run.queue(record)] == ["node7"]
        with pytest.raises(Conflict, match=rf"runs on node7 \(process {os.getpid()}\); run `det batch stop .*` there"):
            local_run.stop(record)


def test_stop_does_not_wait_for_ever_for_a_submission_that_does_not_end(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(project, "exit 1")
    record = newest(project)
    monkeypatch.setattr(os, "kill", lambda *_: None)
    monkeypatch.setattr(local_run, "STOP_SECONDS", 0.0)
    with PidLock(record.folder / local_run.LOCK), pytest.raises(Conflict, match="has not ended after 0 s"):
        local_run.stop(record)


def test_a_program_whose_supervisor_was_killed_is_not_announced_to_run_again(project: Project) -> None:
    pids = project.scratch_dir / "pid"
    with started(project, "echo $$ > ${scratch_dir}/pid; sleep 60; true", stderr=subprocess.PIPE) as process:
        wait_until(lambda: pids.exists() and pids.read_text(), what="the program runs")
        supervisor = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0]
        os.kill(int(supervisor), signal.SIGKILL)
        _, lines = process.communicate(timeout=60)
        assert process.returncode == 1
    assert "local-1: its supervisor was killed; its output: " in lines


def test_a_job_whose_runner_was_killed_is_lost_and_its_program_has_ended(project: Project) -> None:
    pids = project.scratch_dir / "pid"
    with started(project, "echo $$ > ${scratch_dir}/pid; sleep 60; true") as process:
        wait_until(lambda: pids.exists() and pids.read_text(), what="the program runs")
        process.kill()
        process.wait()
    wait_until(lambda: states(newest(project)) == ["LOST"], what="the supervisor has ended")
    assert not Path("/proc", pids.read_text().strip()).exists()


def test_two_submissions_get_different_ids(project: Project) -> None:
    found: list[str] = []

    def take() -> None:
        found.extend(local_run.next_id(project.records) for _ in range(20))

    threads = [threading.Thread(target=take) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found, key=lambda id: int(id.removeprefix("local-"))) == [f"local-{n}" for n in range(1, 61)]


@pytest.mark.parametrize(
    ("gpus", "worker", "environ", "present", "expected"),
    [
        (0, 0, {}, 4, ""),
        (1, 2, {}, 4, "2"),
        (2, 1, {}, 4, "2,3"),
        (2, 1, {}, 3, "0,1"),
        (2, 0, {"CUDA_VISIBLE_DEVICES": "5,7,9"}, 8, "5,7"),
        (4, 0, {}, 0, ""),
    ],
)
def test_each_worker_has_gpus_of_its_own_if_there_are_enough(
    gpus: int, worker: int, environ: dict[str, str], present: int, expected: str
) -> None:
    assert local_run.devices(gpus, worker, environ, present) == expected


def test_a_record_that_runs_already_is_not_started_twice(project: Project) -> None:
    run(project, "exit 1")
    record = newest(project)
    with PidLock(record.folder / local_run.LOCK), pytest.raises(Conflict, match="runs already"):
        on_local.execute(record, lambda _line: None)


def test_a_missing_script_is_named_with_the_command_that_makes_it(project: Project) -> None:
    run(project, "exit 1")
    record = newest(project)
    record.script.unlink()
    with pytest.raises(ConfigError, match="is gone; submit again: det"):
        on_local.retry(replace(record), lambda _line: None)
