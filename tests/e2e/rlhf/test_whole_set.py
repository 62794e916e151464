"""A PPO of eight steps with six workers: a paused run and one whose worker died end as the straight run, bit by bit."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.support.rlhf_sets import STEPS, SetRun, difference, end
from tests.support.waiting import wait_until

Straight = Callable[..., SetRun]

pytestmark = [pytest.mark.e2e, pytest.mark.torch, pytest.mark.xdist_group("rlhf")]


def assert_same_result(run: SetRun, straight: SetRun) -> None:
    assert run.latest["steps_completed"] == STEPS
    assert difference(straight.batches(), run.batches()) == ""
    assert difference(straight.states(), run.states()) == ""


@pytest.mark.budget(60, "starts nineteen processes with torch")
@pytest.mark.long  # test_targets.py pauses a set on the cluster
def test_a_paused_and_continued_set_ends_like_the_straight_run(straight: Straight, tmp_path: Path) -> None:
    run = SetRun(tmp_path / "run")
    assert run.run_and_pause(after_step=2) == 0, run.log
    assert 3 <= run.latest["steps_completed"] < STEPS
    assert run.run() == 0, run.log
    assert_same_result(run, straight())


@pytest.mark.budget(60, "starts nineteen processes with torch")
def test_a_set_whose_worker_was_killed_ends_like_the_straight_run(straight: Straight, tmp_path: Path) -> None:
    run = SetRun(tmp_path / "run", "tiny-ppo-saves")
    assert run.run(FAULT="critic:0:train_step:4:kill") != 0
    assert "role critic[0]" in run.log
    assert "SIGKILL" in run.log
    assert run.latest["steps_completed"] == 3
    assert run.run() == 0, run.log
    assert_same_result(run, straight())


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "label", "reason"),
    [
        ("master_worker:0:score:6:kill", "master_worker[0]", "SIGKILL"),
        ("master_worker:0:score:6:raise", "master_worker[0]", "faults.py:"),
        ("data_worker:0:item:45:kill", "data_worker[0]", "SIGKILL"),
        ("data_worker:0:item:45:raise", "data_worker[0]", "faults.py:"),
        ("actor:0:generate:5:kill", "actor[0]", "SIGKILL"),
        ("actor:0:train_step:5:raise", "actor[0]", "RuntimeError: asked to fail"),
        ("ref:0:inference:0:exit", "ref[0]", "code 7"),
        ("reward:0:inference:0:raise", "reward[0]", "faults.py:"),
    ],
)
def test_each_kind_of_death_is_named_and_nothing_is_lost(
    straight: Straight, tmp_path: Path, fault: str, label: str, reason: str
) -> None:
    run = SetRun(tmp_path / "run", "tiny-ppo-saves")
    assert run.run(FAULT=fault) != 0
    named = next(line for line in run.log.splitlines() if "failed:" in line)
    assert f"role {label}" in named
    assert reason in named
    assert run.run() == 0, run.log
    assert_same_result(run, straight())


@pytest.mark.long
def test_a_worker_that_hangs_is_named_and_the_set_ends(straight: Straight, tmp_path: Path) -> None:
    run = SetRun(tmp_path / "run", "tiny-ppo-saves")
    config = '{"health": {"hang_timeout": "20s"}}'
    assert run.run(FAULT="actor:0:train_step:4:loop", DET_EXPERIMENT_CONFIG=config) != 0
    assert "actor[0].train_step has not answered for" in run.log
    blamed = next(line for line in run.log.splitlines() if "hang: " in line)
    assert "rank 2 is behind: 4 steps" in blamed
    assert "faults.py:" in blamed
    assert run.run() == 0, run.log
    assert_same_result(run, straight())


@pytest.mark.long
def test_a_second_interrupt_ends_a_set_that_hangs(tmp_path: Path) -> None:
    run = SetRun(tmp_path / "run")
    process = run.start(FAULT="actor:0:train_step:2:loop")
    try:
        wait_until(lambda: "train_step:2 " in run.trace_of("actor-0"), what=lambda: run.log)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: "press Ctrl-C again" in run.log, what=lambda: run.log)
        time.sleep(1.2)  # signals within a second are one request
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130, run.log
    finally:
        end(process)


@pytest.mark.long
@pytest.mark.parametrize("experiment", ["tiny-ppo-two", "tiny-ppo-zero0", "tiny-ppo-zero1"])
def test_a_paused_set_with_two_replicas_ends_like_the_straight_run(
    straight: Straight, tmp_path: Path, experiment: str
) -> None:
    data_workers = 2 if experiment == "tiny-ppo-two" else 1
    run = SetRun(tmp_path / "run", experiment, 2, data_workers)
    assert run.run_and_pause(after_step=3) == 0, run.log
    assert run.run() == 0, run.log
    assert_same_result(run, straight(experiment, 2, data_workers))
    assert same_tensors(run.folder, straight(experiment, 2, data_workers).folder, tolerance=0.0)


@pytest.mark.long
def test_a_paused_set_with_zero_2_ends_close_to_the_straight_run(straight: Straight, tmp_path: Path) -> None:
    run = SetRun(tmp_path / "run", "tiny-ppo-zero2", 2)
    assert run.run_and_pause(after_step=3) == 0, run.log
    assert run.run() == 0, run.log
    assert same_tensors(run.folder, straight("tiny-ppo-zero2", 2).folder, tolerance=1e-5)


def same_tensors(one: Path, other: Path, *, tolerance: float) -> bool:
    """Returns True if the weights that both runs saved for PPO's actor and critic are equal within the tolerance."""
    compared = 0
    for model in ("actor", "critic"):
        found = [SetRun.weights(folder, model) for folder in (one, other)]
        for name, value in found[0].items():
            compared += 1
            assert torch.allclose(value, found[1][name], rtol=0, atol=tolerance), f"{model} {name}"
    return compared > 0
