"""A random sequence of pauses and kills, some of them during the recovery from another."""

import os
import signal

import pytest
from tests.support import live_processes
from tests.support.live_models import MODELS
from tests.support.live_trials import create

pytestmark = [pytest.mark.e2e, pytest.mark.torch]


def kill(pids):
    """Kills the processes that still exist."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def pause(experiment):
    experiment.do("pause")
    experiment.do("activate")


def kill_task(experiment):
    kill(experiment.processes[:1])


def kill_shim(experiment):
    kill(live_processes.shims(experiment.cluster.folder / "agent-1"))


def kill_agent(experiment):
    experiment.cluster.agents["agent-1"].end(signal.SIGKILL)
    experiment.cluster.restart_agent(wait=False)


def kill_master(experiment):
    experiment.cluster.kill_master()
    experiment.cluster.start_master()


def kill_both(experiment):
    """Kills the task as well while no agent and no master run."""
    experiment.cluster.agents["agent-1"].end(signal.SIGKILL)
    kill_task(experiment)
    kill_master(experiment)
    experiment.cluster.restart_agent(wait=False)


def test_a_random_sequence_of_pauses_and_kills_gives_the_same_result(cluster, tmp_path, same_as_straight, moments):
    model = moments.choice(["digits", "foreign"])
    experiment = create(cluster, MODELS[model], tmp_path, max_restarts=10)
    deeds = moments.choices([pause, kill_task, kill_shim, kill_agent, kill_master, kill_both], k=4)
    steps = sorted(moments.sample(range(1, 36), 3))
    for deed, step in zip(deeds, [*steps, steps[-1]], strict=True):
        experiment.at_step(step)
        print(f"at step {step}: {deed.__name__}")
        deed(experiment)
    same_as_straight(experiment, model)
