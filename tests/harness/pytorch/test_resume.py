"""Resuming a trial after a pause or a kill: weights are equal bit by bit, and every report occurs once."""

import contextlib
import functools
import importlib.util
import random
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from tests.support.attempts import attempt, chain, joined
from torch import nn

from determined import core, pytorch
from determined.pytorch._legacy import fit_arguments

pytestmark = [pytest.mark.torch, pytest.mark.budget(10, "trains with real checkpoints")]

FOREIGN = Path(__file__).parents[2] / "e2e" / "foreign"


class Noisy(torch.utils.data.Dataset):
    def __len__(self):
        return 52

    def __getitem__(self, index):
        point = torch.arange(6, dtype=torch.float32) * (index % 7) / 20
        point = point + torch.randn(6) * 0.1 + float(np.random.normal(0, 0.1)) + random.uniform(-0.1, 0.1)
        return point, index % 3


class SmallTrial(pytorch.PyTorchTrial):
    workers = 0

    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 3)))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9))
        context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=3, gamma=0.8),
            pytorch.LRScheduler.StepMode.STEP_EVERY_OPTIMIZER_STEP,
        )

    def build_training_data_loader(self):
        return pytorch.DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=self.workers)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Noisy(), batch_size=20)

    def train_batch(self, batch, epoch_idx, batch_idx):
        points, labels = batch
        loss = nn.functional.cross_entropy(self.model(points), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        # random numbers of the training process, besides dropout
        return {"loss": loss, "python": random.random(), "numpy": float(np.random.rand())}

    def evaluate_batch(self, batch, batch_idx):
        points, labels = batch
        return {"validation_loss": nn.functional.cross_entropy(self.model(points), labels), "draw": torch.rand(())}


class TwoWorkers(SmallTrial):
    workers = 2


FIT = {
    "max_length": pytorch.Batch(18),
    "reporting_period": pytorch.Batch(1),
    "validation_period": pytorch.Batch(5),
    "checkpoint_period": pytorch.Batch(4),
    "step_zero_validation": True,
}


def assert_same_training(run, moments):
    """Requires that a training with pauses equals an uninterrupted one. Returns both."""
    straight = run()
    rows = joined([straight])
    parts = chain(run, moments)
    assert parts[-1].weights == straight.weights
    assert parts[-1].optimizers == straight.optimizers
    assert joined(parts) == rows
    return straight, parts


def test_an_uninterrupted_run_reports_each_step_once(tmp_path):
    result = attempt(SmallTrial, tmp_path, fit=FIT, aggregation_frequency=2)
    rows = joined([result])
    assert [step for group, step in rows if group == "training"] == list(range(1, 19))
    assert [step for group, step in rows if group == "validation"] == [0, 5, 10, 15, 18]
    assert not result.acknowledged
    assert result.stored[-1][0] == 18


@pytest.mark.parametrize("moment", range(1, 33))
def test_a_trial_that_is_preempted_at_any_check_trains_the_same(tmp_path, moment):
    """The checks fall inside epochs, at their ends, inside accumulations and between batches of validation."""
    run = functools.partial(attempt, SmallTrial, tmp_path, fit=FIT, aggregation_frequency=2)
    assert_same_training(run, [moment])


def test_a_run_has_a_preemption_check_per_step_and_per_validation_batch(tmp_path):
    straight = attempt(SmallTrial, tmp_path, fit=FIT, aggregation_frequency=2)
    # one check for each step but the last, and one for each validation batch
    assert straight.asked == 17 + 5 * 3


def test_a_trial_that_is_preempted_many_times_trains_the_same(tmp_path):
    run = functools.partial(attempt, SmallTrial, tmp_path, fit=FIT, aggregation_frequency=2)
    _, parts = assert_same_training(run, [1, 1, 2, 1, 3, 5, 1, 2])
    assert len(parts) == 9


def test_a_trial_that_is_preempted_twice_inside_one_validation_trains_the_same(tmp_path):
    run = functools.partial(attempt, SmallTrial, tmp_path, fit=FIT, aggregation_frequency=2)
    # three checks of the validation at 0, four steps, then inside the validation at 5
    _, parts = assert_same_training(run, [3 + 4 + 2, 1, 2])
    assert parts[0].stored[-1][0] == 5
    assert parts[1].stored == []  # the checkpoint of this step exists already
    assert parts[1].reports == []


@pytest.mark.parametrize("period", [3, 7, 100])
def test_metrics_of_an_unfinished_reporting_period_are_reported_after_a_pause(tmp_path, period):
    fit = {**FIT, "reporting_period": pytorch.Batch(period), "validation_period": None}
    run = functools.partial(attempt, SmallTrial, tmp_path, fit=fit)
    assert_same_training(run, [5, 4, 6])


@pytest.mark.parametrize("moments", [[6], [9, 2]])
def test_two_workers_train_the_same_as_none(tmp_path, moments):
    plain = attempt(SmallTrial, tmp_path, fit=FIT, aggregation_frequency=2)
    run = functools.partial(attempt, TwoWorkers, tmp_path, fit=FIT, aggregation_frequency=2)
    straight, _ = assert_same_training(run, moments)
    assert straight.weights == plain.weights


def test_a_trial_killed_after_a_checkpoint_repeats_the_same_steps(tmp_path):
    """The steps after the checkpoint are repeated with the same values."""
    run = functools.partial(attempt, SmallTrial, tmp_path, fit=FIT, aggregation_frequency=2)
    straight = run()
    assert len(straight.stored) > 5
    for step, uuid in straight.stored:
        resumed = run(latest=uuid)
        assert resumed.weights == straight.weights
        expected = {key: value for key, value in joined([straight]).items() if key[1] > step}
        repeated = {key: value for key, value in joined([resumed]).items() if key[1] > step}
        assert repeated == expected


def foreign():
    spec = importlib.util.spec_from_file_location("foreign_model_def", FOREIGN / "model_def.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.ForeignTrial


@pytest.mark.parametrize("moments", [[3], [8], [10], [11], [20], [33, 4], [5, 1, 9, 2]])
def test_a_model_written_for_determined_trains_the_same_after_pauses(tmp_path, capsys, moments):
    config = yaml.safe_load((FOREIGN / "config.yaml").read_text())
    hparams = config["hyperparameters"]
    trial_class = foreign()
    run = functools.partial(
        attempt, trial_class, tmp_path, fit=fit_arguments(config, hparams), hparams=hparams, config=config
    )
    straight, parts = assert_same_training(run, moments)
    finals = [line for line in capsys.readouterr().out.splitlines() if line.startswith("final parameters")]
    assert len(set(finals)) == 1
    assert len(finals) == 2
    first, last = straight.trial, parts[-1].trial
    assert (last.temperature.value, last.temperature.reports) == (first.temperature.value, first.temperature.reports)
    assert last.seen.lives == first.seen.lives


def test_test_mode_trains_one_batch_and_stores_no_file(tmp_path):
    result = attempt(SmallTrial, tmp_path, fit={"test_mode": True})
    assert [(group, step) for group, step, _ in result.reports] == [("training", 1), ("validation", 1)]
    assert list(tmp_path.iterdir()) == []


class StopsOnOneSlot(pytorch.PyTorchTrial):
    """The chief alone requests the end, at the third batch; it has nothing that torch would synchronize."""

    def __init__(self, context):
        self.context = context
        self.batches = 0

    def build_training_data_loader(self):
        return pytorch.DataLoader(range(1000000), batch_size=1)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(range(2), batch_size=1)

    def train_batch(self, batch, epoch_idx, batch_idx):
        self.batches += 1
        if batch_idx >= 2 and self.context.distributed.rank == 0:
            self.context.set_stop_requested(True)
        return {"loss": 1.0}

    def evaluate_batch(self, batch, batch_idx):
        return {"validation_loss": 1.0}


def test_the_end_that_one_of_two_slots_requests_ends_both_after_the_same_batch(tmp_path):
    fit = {"max_length": pytorch.Batch(1000000), "reporting_period": pytorch.Batch(1000000)}
    ends = {}

    def run(rank):
        with connected(rank, tmp_path) as peers:
            ends[rank] = attempt(StopsOnOneSlot, tmp_path, fit=fit, distributed=peers)

    ranks = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join(8)
    assert sorted(ends) == [0, 1]
    assert 3 <= ends[0].trial.batches == ends[1].trial.batches
    assert [step for step, _ in ends[0].stored] == [ends[0].trial.batches]


def connected(rank, folder):
    places = {"rank": rank, "size": 2, "local_rank": rank, "local_size": 2, "cross_rank": 0, "cross_size": 1}
    return contextlib.closing(core.DistributedContext(**places, environ={"DET_RUN_DIR": str(folder)}))
