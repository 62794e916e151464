"""Checkpoints of the Hydra example: which are kept, and errors of the asynchronous writer."""

import math
from pathlib import Path

import pytest
import torch
from mlstm.checkpoints import FolderCheckpoints, find_checkpoint, saved_steps, steps_to_delete
from mlstm.config_schema import CheckpointingConfig
from mlstm.errors import ConfigError

pytestmark = pytest.mark.torch


def configured(*, asynchronous: bool = False) -> CheckpointingConfig:
    return CheckpointingConfig("kept", every_n_steps=1, max_to_keep=2, keep_best=True, asynchronous=asynchronous)


@pytest.mark.parametrize(
    ("losses", "max_to_keep", "keep_best", "deleted"),
    [
        ({1: 3.0, 2: 1.0, 3: 2.0}, None, False, []),
        ({1: 3.0, 2: 1.0, 3: 2.0}, 1, False, [1, 2]),
        ({1: 3.0, 2: 1.0, 3: 2.0}, 1, True, [1]),
        ({3: 1.0, 10: 2.0, 9: 2.0}, 1, True, [9]),
        ({1: math.inf, 2: 5.0}, 1, True, [1]),
        ({}, 1, True, []),
    ],
)
def test_the_newest_and_the_best_checkpoints_are_kept(
    losses: dict[int, float], max_to_keep: int | None, keep_best: bool, deleted: list[int]
) -> None:
    assert steps_to_delete(losses, max_to_keep, keep_best=keep_best) == deleted


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_checkpoint_folder_has_the_newest_two_and_the_best(tmp_path: Path, asynchronous: bool) -> None:
    checkpoints = FolderCheckpoints(configured(asynchronous=asynchronous), tmp_path)
    weights = torch.zeros(3)
    for step, loss in enumerate([5.0, 1.0, 4.0, 3.0, 2.0], start=1):
        weights += 1
        checkpoints.save(step, {"weights": weights}, loss)
    weights += 100  # training continues while a copy is written
    checkpoints.close()
    assert saved_steps(tmp_path / "kept") == [2, 4, 5]
    for step in (2, 4, 5) if asynchronous else (2,):
        state = torch.load(find_checkpoint(tmp_path, "kept", step), weights_only=True)
        assert state["weights"].tolist() == [step] * 3
    assert find_checkpoint(tmp_path, "kept", -1).parent.name == "step_5"


def test_an_error_of_the_checkpoint_writer_is_raised_by_the_next_call(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("a file where the folder should be")
    checkpoints = FolderCheckpoints(configured(asynchronous=True), tmp_path)
    checkpoints.save(1, {}, None)
    with pytest.raises(OSError):
        checkpoints.close()


def test_the_error_for_a_missing_checkpoint_lists_the_existing_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no checkpoint"):
        find_checkpoint(tmp_path, "kept", -1)
    for name in ("step_10", "step_9", ".step_11.part"):
        (tmp_path / "kept" / name).mkdir(parents=True)
    with pytest.raises(ConfigError, match="has no step_8; it has 9, 10"):
        find_checkpoint(tmp_path, "kept", 8)
