"""A worker that dies or hangs on any machine is reported, its peers end at once, and the trial resumes."""

import os
import signal
import time

import pytest
from tests.support.live_launchers import LAYERS, example_under, workers
from tests.support.live_trials import create
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.budget(90, "cuts machines off")]
STEP = 25
"""Later than the checkpoint at step 20."""


@pytest.mark.long  # test_machines.py covers the end of the container, tests/e2e/test_kills.py the next attempt
@pytest.mark.parametrize("layer", LAYERS)
def test_a_worker_killed_on_the_second_machine_is_reported_and_the_trial_resumes(gang, same_as_bare, tmp_path, layer):
    slots = gang.shape("2x1")
    model = example_under(layer, slots=slots, held=True)
    experiment = create(gang, model, tmp_path / "killed", held=(f"train-{STEP}",))
    experiment.at_gate(f"train-{STEP}", within=120)
    first = set(experiment.processes)
    victim = wait_until(lambda: workers(experiment).get(1), what="the worker of rank 1")
    os.kill(victim, signal.SIGKILL)
    began = time.monotonic()
    wait_until(lambda: not first & set(experiment.processes), within=20, what="the peers are gone")
    took = time.monotonic() - began
    print(f"{layer}: peers gone after {took:.2f} s")
    experiment.open_gate(f"train-{STEP}")
    experiment.ended(within=120)
    same_as_bare(experiment, layer, slots)
    log = "\n".join(experiment.log)
    host = gang.network.machines[1].hostname
    sentence = f"rank 1 on {host} was killed by signal 9 (SIGKILL)"
    assert sentence in log, log
    (failed, resumed) = gang.session.get(f"/detent/trials/{experiment.trial_id}/attempts")["attempts"]
    assert failed["message"].startswith(sentence)
    assert failed["code"] == 137
    assert resumed["reason"] == "completed"
    assert experiment.trials[0]["restarts"] == 1
    experiment.nothing_left()
    assert took <= 2.0


SLEEPS = """
import threading
import torch
import torch.distributed as dist
from determined import core

dist.init_process_group("gloo")
with core.init(distributed=core.DistributedContext.from_torch_distributed()) as context:
    for step in range(1, 5):
        if step == 3 and dist.get_rank() == 1:
            threading.Event().wait()
        dist.all_reduce(torch.ones(1))
        if dist.get_rank() == 0:
            context.train.report_training_metrics(step, {"loss": 1.0})
"""


@pytest.mark.long  # test_hangs.py names the rank that hangs
def test_a_rank_that_sleeps_while_the_others_wait_is_named_in_the_attempt(gang, tmp_path):
    model = example_under("torch_distributed", "script", slots=gang.shape("2x1"))
    entrypoint = "python3 -m determined.launch.torch_distributed sleeps.py"
    experiment = create(
        gang,
        model,
        tmp_path,
        files={"sleeps__py": SLEEPS},
        entrypoint=entrypoint,
        launch={"hang_timeout": "10s"},
        max_restarts=0,
    )
    experiment.ended("ERROR", within=90)
    log = "\n".join(experiment.log)
    assert "sleeps.py" in log
    assert "rank 1" in (gang.session.get(f"/detent/trials/{experiment.trial_id}/attempts")["attempts"][0]["message"])
    experiment.nothing_left()


@pytest.mark.long  # tests/e2e/test_bad_network.py loses a machine; test_machines.py ends a collective
def test_a_trial_resumes_after_a_machine_leaves_during_a_collective(gang, tmp_path):
    """After the reconnect window the attempt is given up. The trial continues when enough machines are connected again."""
    slots = gang.shape("2x1")
    model = example_under("torch_distributed", slots=slots, held=True)
    experiment = create(gang, model, tmp_path, held=(f"train-{STEP}",))
    experiment.at_gate(f"train-{STEP}", within=120)
    lost_machine = gang.network.machines[1]
    gang.network.cut(lost_machine)
    try:
        experiment.open_gate(f"train-{STEP}")
        wait_until(lambda: experiment.progress["runId"] == 2 or experiment.progress["state"] == "QUEUED", within=60)
    finally:
        gang.network.mend(lost_machine)
    experiment.ended(within=120)
    assert any(
        "attempt 1 of" in line and "was lost" in line and lost_machine.hostname in line for line in experiment.log
    ), experiment.log[-30:]
    assert experiment.trials[0]["restarts"] == 0
    experiment.nothing_left()
