"""Trials in containers that are paused or killed end with the same bits as a straight run without containers."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from tests.support import live_processes, plain_scripts
from tests.support.container_engine import need_engine
from tests.support.waiting import wait_until

from determined_launch import process_table

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.budget(60, "trains in containers with pauses")]


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="this run has no workers to share tests among")
def test_all_tests_of_the_engine_run_on_one_worker(request):
    """A test of this file kills the engine, which no other test may use meanwhile."""
    in_group = "@container-engine"
    folder = Path(__file__).parent
    items = [item for item in request.session.items if item.path.is_relative_to(folder)]
    assert request.node in items
    assert [item.nodeid for item in items if in_group not in item.nodeid] == []


def test_a_trial_in_a_container_is_paused_and_resumes_with_the_same_bits(boxes, in_container, same_as_straight):
    experiment = in_container(gates=("train-17",))
    experiment.at_gate("train-17")
    assert len(boxes.containers) == 1
    experiment.pause()
    boxes.no_container_left()
    experiment.do("activate")
    same_as_straight(experiment)
    boxes.no_container_left()
    assert any("with image detent/cpu" in line for line in experiment.log)


def test_a_killed_container_is_a_system_failure_and_the_trial_ends_with_the_same_bits(
    boxes, in_container, same_as_straight
):
    experiment = in_container()
    experiment.at_step(8)
    (name,) = boxes.containers
    subprocess.run(["docker", "kill", "--signal", "KILL", name], check=True, capture_output=True)
    same_as_straight(experiment)
    assert experiment.trials[0]["restarts"] == 0
    boxes.no_container_left()


def test_a_container_removed_by_somebody_else_is_a_system_failure(boxes, in_container, same_as_straight):
    experiment = in_container()
    experiment.at_step(8)
    (name,) = boxes.containers
    subprocess.run(["docker", "rm", "--force", name], check=True, capture_output=True)
    same_as_straight(experiment)
    # The engine may report it as exited before it is removed.
    ends = ("the container was removed by another program", "its container with code 137")
    assert any(end in line for line in experiment.log for end in ends), experiment.log
    assert experiment.trials[0]["restarts"] == 0


def test_a_killed_shim_in_a_container_leaves_no_container_and_counts_no_restart(boxes, in_container, same_as_straight):
    experiment = in_container()
    experiment.at_step(8)
    # The first process of a container has the shim's command line as well; the shim is below it.
    (pid,) = {
        shim
        for first in live_processes.shims(boxes.folder / "agent-1")
        for shim in live_processes.below({first})
        if any(word.endswith("shim.py") for word in live_processes.command_of(shim))
    }
    os.kill(pid, signal.SIGKILL)
    same_as_straight(experiment)
    assert experiment.trials[0]["restarts"] == 0
    boxes.no_container_left()


def test_a_container_runs_on_while_its_agent_is_killed(boxes, in_container, same_as_straight):
    experiment = in_container()
    experiment.at_step(5)
    boxes.agents["agent-1"].end(signal.SIGKILL)
    boxes.start_containers()
    same_as_straight(experiment)
    assert {report["trialRunId"] for report in experiment.reports("training")} == {1}
    boxes.no_container_left()


def test_a_container_runs_on_while_the_master_is_killed(boxes, in_container, same_as_straight):
    experiment = in_container()
    experiment.at_step(5)
    boxes.kill_master()
    boxes.start_master()
    same_as_straight(experiment)
    assert {report["trialRunId"] for report in experiment.reports("training")} == {1}
    boxes.no_container_left()


def test_a_container_runs_on_while_the_engine_is_killed(boxes, in_container, same_as_straight):
    """The engine keeps containers alive (live-restore). The agent reconnects and reports their end."""
    experiment = in_container()
    experiment.at_step(5)
    pid = int(Path("/var/run/docker.pid").read_text())
    os.kill(pid, signal.SIGKILL)
    # No other engine starts while the pid is in use, so wait until the process is reaped.
    wait_until(lambda: process_table.find(pid) is None, what="the engine has ended")
    need_engine()
    same_as_straight(experiment)
    assert {report["trialRunId"] for report in experiment.reports("training")} == {1}
    boxes.no_container_left()


def test_the_next_agent_removes_a_container_without_a_record(boxes):
    boxes.agents["agent-1"].end(signal.SIGKILL)
    created = ["docker", "run", "--detach", "--label", boxes.label, "--label", "detent.agent=agent-1"]
    subprocess.run([*created, "detent-base:bookworm", "sleep", "600"], check=True, capture_output=True)
    assert boxes.containers
    boxes.start_containers()
    boxes.no_container_left()


@pytest.mark.long
def test_a_plain_script_in_a_container_is_paused_by_a_signal_and_continues(boxes, tmp_path):
    saves = str(tmp_path / "saves")
    mounts = [{"host_path": saves, "container_path": saves}]
    script = plain_scripts.create(boxes, tmp_path, {"loop.sh": plain_scripts.LOOP}, "bash loop.sh", bind_mounts=mounts)
    script.has_lines("steps", 3)
    script.pause()
    boxes.no_container_left()
    script.do("activate")
    script.ended()
    assert script.steps == list(range(1, plain_scripts.STEPS + 1))
