"""An agent in a job of Slurm: its tasks' variables, its devices, and its end with the job."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.agents import make_desired
from tests.support.fake_link_master import TOKEN, FakeLinkMaster, serving
from tests.support.waiting import eventually

from determined.errors import ConfigError, DeterminedError
from determined.link.messages import DesiredContainer
from determined_agent import pilot
from determined_agent.accelerators.device import Device
from determined_agent.accelerators.job_devices import devices_of_job
from determined_agent.drivers.driver import RunEnd
from determined_agent.pilot import ExitHold, device_variables, prepare_folder, task_variables
from determined_agent.settings import read_settings

BEFORE = {"PATH": "/bin", "OMP_NUM_THREADS": "1", "HOME": "/h", "SLURM_NTASKS": "1", "SLURM_JOB_ID": "550"}


def written(folder: Path, **variables: str) -> Path:
    file = folder / "environment"
    file.write_bytes(b"".join(f"{name}={value}\0".encode() for name, value in variables.items()))
    return file


def test_tasks_get_what_set_up_lines_export_and_nothing_of_slurm(tmp_path):
    changed = {"PATH": "/cuda/bin:/bin", "UCX_TLS": "rc", "TWO": "a\nb=c", "PMIX_RANK": "0", "SLURM_X": "1", "_": "x"}
    after = written(tmp_path, **(BEFORE | changed | {"BASH_FUNC_module%%": "() { :; }", "DET_AGENT_SLOTS": "9"}))
    found = task_variables({"PATH": "/bin", "HOME": "/h"}, BEFORE, after)
    assert found == {"PATH": "/cuda/bin:/bin", "HOME": "/h", "UCX_TLS": "rc", "TWO": "a\nb=c"}


def test_what_set_up_lines_unset_does_not_reach_tasks(tmp_path):
    after = written(tmp_path, PATH="/bin", HOME="/h")
    assert task_variables({"PATH": "/bin", "OMP_NUM_THREADS": "1"}, BEFORE, after) == {"PATH": "/bin"}


def test_the_nodes_disk_becomes_tmpdir_and_the_job_has_a_variable():
    environ = BEFORE | {"SLURM_TMPDIR": "/disk/550", "DET_SLURM_JOB_ID": "550", "TMPDIR": "/tmp"}
    assert task_variables({"TMPDIR": "/tmp"}, environ, None) == {"TMPDIR": "/disk/550", "DET_SLURM_JOB_ID": "550"}


def test_settings_of_a_pilot_have_the_variables_of_its_job_and_others_do_not(tmp_path):
    environ = BEFORE | {"DET_SLURM_JOB_ID": "550", "CUDA_VISIBLE_DEVICES": "3", "DET_AGENT_PILOT": "true"}
    found = read_settings([], environ)
    assert (found.base_environment["DET_SLURM_JOB_ID"], found.job_devices) == ("550", {"CUDA_VISIBLE_DEVICES": "3"})
    assert "CUDA_VISIBLE_DEVICES" not in found.base_environment
    assert read_settings(["--slots", "2"], environ).base_environment["CUDA_VISIBLE_DEVICES"] == ""
    del environ["DET_AGENT_PILOT"]
    assert read_settings([], environ).job_devices == {}
    environ |= {"DET_AGENT_PILOT": "true", "DET_AGENT_SETUP_ENVIRONMENT": str(tmp_path / "no")}
    with pytest.raises(ConfigError, match=r"cannot read the variables of the job's set-up, .*/no: No such file"):
        read_settings([], environ)


def gpus(count: int, kind: str = "cuda") -> list[Device]:
    return [Device(f"GPU-{number}a", kind) for number in range(count)]


@pytest.mark.parametrize(
    ("visible", "variables", "chosen"),
    [
        (8, {"CUDA_VISIBLE_DEVICES": "2,3", "SLURM_JOB_GPUS": "2,3"}, [2, 3]),
        (2, {"CUDA_VISIBLE_DEVICES": "0,1", "SLURM_JOB_GPUS": "2,3"}, [0, 1]),
        (8, {"CUDA_VISIBLE_DEVICES": "GPU-5a"}, [5]),
        (8, {"SLURM_JOB_GPUS": "6,7"}, [6, 7]),
        (2, {"SLURM_JOB_GPUS": "6,7"}, [0, 1]),
        (8, {"SLURM_STEP_GPUS": "1", "SLURM_JOB_GPUS": "0,1"}, [1]),
        (8, {"CUDA_VISIBLE_DEVICES": "NoDevFiles"}, []),
        (8, {"CUDA_VISIBLE_DEVICES": ""}, []),
        (8, {"ROCR_VISIBLE_DEVICES": "1"}, []),
        (8, {}, []),
        (0, {"CUDA_VISIBLE_DEVICES": "0"}, []),
    ],
)
def test_the_devices_of_a_job_are_those_that_slurm_names(visible, variables, chosen):
    all_devices = gpus(visible)
    assert devices_of_job(all_devices, device_variables(variables | {"SLURM_NTASKS": "1"})) == [
        all_devices[number] for number in chosen
    ]


def test_amd_devices_of_a_job_have_a_variable_of_their_own():
    found = gpus(4, "rocm")
    assert devices_of_job(found, {"ROCR_VISIBLE_DEVICES": "3", "CUDA_VISIBLE_DEVICES": "0"}) == [found[3]]


@pytest.mark.parametrize("word", ["2", "GPU-9", "GPU-"])
def test_a_device_that_is_not_found_is_named(word):
    with pytest.raises(
        DeterminedError, match=f"CUDA_VISIBLE_DEVICES of this job names the device {word}, which is not"
    ):
        devices_of_job(gpus(2), {"CUDA_VISIBLE_DEVICES": word})


async def test_a_failed_exit_is_held_back_and_dropped_when_the_job_ends():
    hold = ExitHold(seconds=600)
    waiting = asyncio.create_task(hold.wait(RunEnd("exited", signal=15)))
    await eventually(lambda: hold.held == 1)
    await hold.wait(RunEnd("exited", code=0))
    hold.job_ends()
    late = asyncio.create_task(hold.wait(RunEnd("exited", code=0)))
    await eventually(lambda: hold.held == 2)
    for task in (waiting, late):
        assert not task.done()
        task.cancel()


async def test_a_failed_exit_is_reported_after_the_hold_while_the_job_goes_on():
    hold = ExitHold(seconds=0.01)
    await hold.wait(RunEnd("exited", code=1))
    assert hold.held == 0


def test_the_folder_of_pilots_loses_what_killed_ones_left_and_is_refused_if_it_is_not_ours(tmp_path, monkeypatch):
    monkeypatch.setattr(pilot, "STALE_SECONDS", -1)
    for name in ("killed", "mine"):
        (tmp_path / "pilots" / name).mkdir(parents=True)
        (tmp_path / "pilots" / name / "agent.lock").touch()
    (tmp_path / "pilots" / "other-program").mkdir()
    (tmp_path / "pilots" / "gone").symlink_to("removed by another pilot")
    prepare_folder(tmp_path / "pilots" / "mine")
    assert {each.name for each in (tmp_path / "pilots").iterdir()} == {"gone", "mine", "other-program"}
    (tmp_path / "link").symlink_to(tmp_path / "pilots")
    with pytest.raises(DeterminedError, match="belongs to another user of this node; set node_scratch"):
        prepare_folder(tmp_path / "link" / "mine")
    (tmp_path / "file").touch()
    with pytest.raises(DeterminedError, match="set node_scratch"):
        prepare_folder(tmp_path / "file" / "mine")


@asynccontextmanager
async def running_pilot(url: str, folder: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Yields the process of a pilot."""
    (folder / "token").write_text(TOKEN)
    words = ["--master", url, "--token-file", str(folder / "token"), "--slots", "1", "--tasks-as-me", "--id", "a"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "determined_agent", *words, "--data", str(folder / "pilots" / "a")),
        env=os.environ
        | {"DET_AGENT_PILOT": "true", "DET_AGENT_ISOLATION": "none", "SLURM_NTASKS": "1", "DET_SLURM_JOB_ID": "550"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def task(entrypoint: str) -> DesiredContainer:
    return make_desired(entrypoint, environment={"DET_RESOURCES_ID": "r"})


def states(master: FakeLinkMaster) -> set[str]:
    return {each.state.value for report in master.reports for each in report.containers}


@pytest.mark.budget(15, "starts an agent as a process")
async def test_a_pilot_reports_no_exit_that_the_end_of_its_job_caused_and_leaves_no_file(tmp_path):
    """TERM reaches the task before the agent, as it may in Slurm."""
    pid_file = tmp_path / "pid"
    master, desired = FakeLinkMaster(), task(f"echo $$ > {pid_file}; exec sleep 600")
    async with serving(master.app()) as url, running_pilot(url, tmp_path) as process:
        await master.set_desired(desired)
        await eventually(lambda: pid_file.exists() and pid_file.read_text().strip())
        os.kill(int(pid_file.read_text()), signal.SIGTERM)
        process.terminate()
        assert await process.wait() == 0
        assert "TERMINATED" not in states(master)
    assert not (tmp_path / "pilots" / "a").exists()


@pytest.mark.budget(15, "starts an agent as a process")
async def test_a_pilot_that_is_told_to_end_goes_on_until_its_task_has_ended(tmp_path):
    """A trial that saves after a TERM for the batch script alone keeps its time."""
    gate = tmp_path / "gate"
    master = FakeLinkMaster()
    desired = task(f"touch {tmp_path}/runs; while [ ! -e {gate} ]; do sleep 0.05; done")
    async with serving(master.app()) as url, running_pilot(url, tmp_path) as process:
        await master.set_desired(desired)
        await eventually((tmp_path / "runs").exists)
        process.terminate()
        seen = len(master.reports)
        await eventually(lambda: len(master.reports) > seen + 3)
        assert process.returncode is None
        late = task("true")
        await master.set_desired(desired, late)
        gate.touch()
        assert await process.wait() == 0
        assert "TERMINATED" not in states(master)
        assert {each.container_id for report in master.reports for each in report.containers} == {desired.container_id}


@pytest.mark.budget(15, "starts an agent as a process")
async def test_a_task_that_fails_in_a_job_that_goes_on_is_reported(tmp_path):
    master, desired = FakeLinkMaster(), task("exit 7")
    async with serving(master.app()) as url, running_pilot(url, tmp_path):
        await master.set_desired(desired)
        await eventually(lambda: "TERMINATED" in states(master))
