"""Trials with a process killed by SIGKILL at a random moment: the same bits, each step once, and no leftover process."""

import os
import signal
import time

import pytest
from tests.support import live_processes
from tests.support.live_models import MODELS
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.torch]


def runs_of(experiment):
    return {report["trialRunId"] for report in experiment.reports("training")}


@pytest.mark.parametrize("model", ["digits", pytest.param("foreign", marks=pytest.mark.long)])
def test_a_trial_whose_worker_was_killed_gives_the_same_result(cluster, tmp_path, same_as_straight, moments, model):
    experiment = create(cluster, MODELS[model], tmp_path)
    experiment.at_step(moments.randrange(1, 36))
    os.kill(experiment.worker, signal.SIGKILL)
    same_as_straight(experiment, model)
    assert experiment.trials[0]["restarts"] == 1
    assert any("signal 9" in line or "SIGKILL" in line for line in experiment.log), experiment.log


def test_a_trial_runs_on_while_its_agent_is_killed_and_restarted(cluster, tmp_path, same_as_straight, moments):
    """The restarted agent finds the running task, and nothing is restarted."""
    experiment = create(cluster, MODELS["digits"], tmp_path)
    experiment.at_step(moments.randrange(1, 36))
    cluster.agents["agent-1"].end(signal.SIGKILL)
    cluster.restart_agent()
    same_as_straight(experiment)
    assert runs_of(experiment) == {1}


def test_a_trial_that_ends_while_its_agent_is_away_gives_the_same_result(cluster, tmp_path, same_as_straight, moments):
    """The next agent reports its end and its last lines."""
    experiment = create(cluster, MODELS["digits"], tmp_path)
    experiment.at_step(moments.randrange(20, 36))
    cluster.agents["agent-1"].end(signal.SIGKILL)
    wait_until(lambda: not experiment.processes, what="the task ends by itself")
    cluster.restart_agent()
    same_as_straight(experiment)
    assert runs_of(experiment) == {1}


def test_a_trial_runs_on_while_the_master_is_killed_and_restarted(cluster, tmp_path, same_as_straight, moments):
    """The task continues to train and delivers its reports later."""
    experiment = create(cluster, MODELS["digits"], tmp_path)
    experiment.at_step(moments.randrange(1, 36))
    cluster.kill_master()
    cluster.start_master()
    same_as_straight(experiment)
    assert runs_of(experiment) == {1}


def test_a_killed_shim_is_a_system_failure_and_counts_no_restart(cluster, tmp_path, same_as_straight, moments):
    """The task ends with its shim."""
    experiment = create(cluster, MODELS["digits"], tmp_path)
    experiment.at_step(moments.randrange(1, 36))
    (pid,) = live_processes.shims(cluster.folder / "agent-1")
    os.kill(pid, signal.SIGKILL)
    same_as_straight(experiment)
    assert experiment.trials[0]["restarts"] == 0
    assert experiment.progress["runId"] == 2


def test_the_log_of_a_killed_task_is_complete(cluster, tmp_path):
    """The log contains every line that the task had printed."""
    entrypoint = "seq 1 3000; touch $GATES/printed.here; sleep 600"
    experiment = create(cluster, MODELS["script"], tmp_path, entrypoint=entrypoint)
    experiment.at_gate("printed")
    experiment.do("kill")
    experiment.ended("CANCELED")
    wait_until(lambda: "3000" in experiment.log, within=10, what="the last line")
    assert [line for line in experiment.log if line.isdigit()] == [str(n) for n in range(1, 3001)]
    experiment.nothing_left()


def test_a_trial_that_ends_while_the_master_is_away_gives_the_same_result(cluster, tmp_path, same_as_straight, moments):
    """The task waits for the master and then delivers its reports."""
    batch = moments.randrange(37, 40)
    experiment = create(cluster, MODELS["digits"], tmp_path, held=(f"train-{batch}",))
    experiment.at_gate(f"train-{batch}")
    worker = experiment.worker
    cluster.kill_master()
    experiment.open_gate(f"train-{batch}")
    spool = cluster.folder / "agent-1" / "runs"
    wait_until(lambda: list(spool.glob("*/run/spool/metrics.jsonl")), what="reports kept on disk")
    os.kill(worker, 0)
    cluster.start_master()
    same_as_straight(experiment)
    assert runs_of(experiment) == {1}


ASKS = """
from gates import gate
from determined import core
with core.init() as context:
    gate("asks")
    context.train.set_metadata({"kept": 1})
    gate("asks-again")
    print("it is", context.train.get_metadata())
"""


@pytest.mark.long  # the other tests of killed masters report through it
def test_a_request_of_a_task_waits_while_the_master_is_down(cluster, tmp_path):
    """The requests wait for the master, and no trial fails."""
    files, gates = {"asks__py": ASKS}, ("asks", "asks-again")
    experiment = create(cluster, MODELS["script"], tmp_path, files=files, held=gates, entrypoint="python3 asks.py")
    for name in gates:
        experiment.at_gate(name)
        cluster.kill_master()
        experiment.open_gate(name)
        until = time.monotonic() + 2.0  # an ordinary client has given up by then
        wait_until(lambda t=until: time.monotonic() > t)
        cluster.start_master()
    experiment.ended()
    # An end that came while the master was away is known before the output that its agent still has.
    wait_until(lambda: "it is {'kept': 1}" in experiment.log, within=10, what="the last line")
