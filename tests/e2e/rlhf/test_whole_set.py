"""A PPO of eight steps with six workers: a paused run and one whose worker died end as the straight run, bit by bit."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.rlhf_sets import STEPS, SetRun, difference

Straight = Callable[..., SetRun]


@pytest.fixture(scope="session")
def straight(tmp_path_factory: pytest.TempPathFactory) -> Straight:
    """Returns a function that returns the uninterrupted run of an experiment; each is run once."""
    made: dict[tuple[str, int, int], SetRun] = {}

    def run(experiment: str = "tiny-ppo", replicas: int = 1, data_workers: int = 1) -> SetRun:
        key = (experiment, replicas, data_workers)
        if key not in made:
            made[key] = SetRun(tmp_path_factory.mktemp("straight") / "run", *key)
            assert made[key].run() == 0, made[key].log
        return made[key]

    return run


def assert_same_result(run: SetRun, straight: SetRun) -> None:
    assert run.latest["steps_completed"] == STEPS
    assert difference(straight.batches(), run.batches()) == ""
    assert difference(straight.states(), run.states()) == ""


@pytest.mark.budget(60, "starts nineteen processes with torch")
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
