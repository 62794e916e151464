"""Gradient scalers, ``use_amp`` and ``configure_apex_amp``, as existing trials use them."""

import functools

import pytest
import torch
from tests.support.attempts import attempt, chain, joined
from torch import nn

from determined import pytorch
from determined.pytorch import _experimental

pytestmark = pytest.mark.torch

FIT = {
    "max_length": pytorch.Batch(6),
    "reporting_period": pytorch.Batch(1),
    "validation_period": pytorch.Batch(3),
    "checkpoint_period": pytorch.Batch(2),
}


def clip(parameters):
    torch.nn.utils.clip_grad_norm_(parameters, 1e-3)


class Linear(pytorch.PyTorchTrial):
    """A trial that learns one matrix. The tests override ``setup`` and ``step``."""

    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(nn.Linear(4, 2))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.1))
        self.types = []
        self.setup()

    def setup(self):
        pass

    def step(self, loss):
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)

    def build_training_data_loader(self):
        return pytorch.DataLoader([(torch.full((4,), n / 10), n % 2) for n in range(12)], batch_size=4)

    build_validation_data_loader = build_training_data_loader

    def train_batch(self, batch, epoch_idx, batch_idx):
        inputs, labels = batch
        output = self.model(inputs)
        self.types.append(output.dtype)
        loss = nn.functional.cross_entropy(output, labels)
        self.step(loss)
        return {"loss": loss}

    def evaluate_batch(self, batch, batch_idx):
        inputs, labels = batch
        output = self.model(inputs)
        self.types.append(output.dtype)
        return {"validation_loss": nn.functional.cross_entropy(output, labels)}


class Clipped(Linear):
    def step(self, loss):
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer, clip_grads=clip)


class Unscaled(Linear):
    """A trial that unscales its gradients itself before the context clips them and steps."""

    def setup(self):
        self.scaler = self.context.wrap_scaler(torch.amp.GradScaler("cpu", init_scale=64.0))

    def step(self, loss):
        self.context.backward(self.scaler.scale(loss))
        self.scaler.unscale_(self.optimizer)
        self.context.step_optimizer(self.optimizer, clip_grads=clip, scaler=self.scaler)
        self.scaler.update()


def test_a_trial_may_unscale_its_gradients_before_the_step(tmp_path):
    unscaled = attempt(Unscaled, tmp_path, fit=FIT)
    assert unscaled.weights == attempt(Clipped, tmp_path, fit=FIT).weights


class ForgottenUpdate(Unscaled):
    def step(self, loss):
        self.context.backward(self.scaler.scale(loss))
        self.context.step_optimizer(self.optimizer, clip_grads=clip, scaler=self.scaler)


def test_a_scaler_without_an_update_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match=r"after step\(\)"):
        attempt(ForgottenUpdate, tmp_path, fit=FIT)


class Amp(Linear):
    def setup(self):
        self.context.experimental.use_amp()

    step = Clipped.step


def test_use_amp_computes_in_bfloat16_and_keeps_weights_in_float32(tmp_path):
    result = attempt(Amp, tmp_path, fit=FIT)
    assert set(result.trial.types) == {torch.bfloat16}
    assert {parameter.dtype for parameter in result.trial.model.parameters()} == {torch.float32}
    assert [step for group, step in joined([result]) if group == "training"] == list(range(1, 7))


def test_use_amp_scales_unscales_and_updates_once_for_each_batch(tmp_path, monkeypatch):
    def scaling(device):
        return torch.amp.GradScaler(device.type, init_scale=64.0, growth_interval=2)

    monkeypatch.setattr(_experimental, "make_scaler", scaling)
    straight = attempt(Amp, tmp_path, fit=FIT)
    (scaler,) = straight.trial.context.scalers
    assert scaler.get_scale() == 64.0 * 2 ** (6 // 2)  # it grows after every second update
    parts = chain(functools.partial(attempt, Amp, tmp_path, fit=FIT), [2, 1])
    assert parts[-1].weights == straight.weights
    assert parts[-1].trial.context.scalers[0].get_scale() == 64.0 * 2 ** (6 // 2)


class BothScalers(Linear):
    def setup(self):
        self.context.experimental.use_amp()
        self.context.wrap_scaler(torch.amp.GradScaler("cpu"))


def test_use_amp_together_with_a_scaler_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="use only one of the two"):
        attempt(BothScalers, tmp_path, fit=FIT)


class Apex(Linear):
    def setup(self):
        self.model, self.optimizer = self.context.configure_apex_amp(self.model, self.optimizer, opt_level="O2")


class ApexOff(Linear):
    def setup(self):
        self.model, self.optimizer = self.context.configure_apex_amp(self.model, self.optimizer, opt_level="O0")


def test_configure_apex_amp_is_refused_with_its_replacement(tmp_path):
    with pytest.raises(NotImplementedError, match=r"context\.experimental\.use_amp\(\)"):
        attempt(Apex, tmp_path, fit=FIT)


def test_configure_apex_amp_without_mixed_precision_changes_nothing(tmp_path):
    assert attempt(ApexOff, tmp_path, fit=FIT).weights == attempt(Linear, tmp_path, fit=FIT).weights


class StopsAtOnce(Linear):
    def setup(self):
        self.context.set_stop_requested(True)


def test_a_stop_that_is_requested_in_init_ends_training_after_the_first_batch(tmp_path):
    result = attempt(StopsAtOnce, tmp_path, fit=FIT)
    assert [(group, step) for group, step in joined([result])] == [("training", 1), ("validation", 1)]
    assert result.stored[-1][0] == 1
