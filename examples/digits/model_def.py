"""A small network on handwritten-like digits, made hard to resume: everything here has state or draws."""

import hashlib
from typing import Any

import torch
from digits_data import SIZE, Digits
from torch import nn

from determined import pytorch


class FinalLine(pytorch.PyTorchCallback):
    """At the end of training prints a hash over all parameters: equal lines, equal weights."""

    def __init__(self, context: pytorch.PyTorchTrialContext, model: nn.Module) -> None:
        self.context = context
        self.model = model

    def on_trial_shutdown(self) -> None:
        if self.context.current_train_batch() + 1 >= self.context.get_hparam("batches"):
            print(f"final parameters sha256: {fingerprint(self.model)}", flush=True)


class DigitsTrial(pytorch.PyTorchTrial):
    """Dropout, momentum, a step scheduler, augmentation, shuffle, two loader workers, gradients of two batches."""

    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(build_model(context.get_hparam("hidden"), context.get_hparam("dropout")))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("learning_rate"), momentum=0.9)
        self.optimizer = context.wrap_optimizer(optimizer)
        self.scheduler = context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=60, gamma=0.7),
            step_mode=pytorch.LRScheduler.StepMode.STEP_EVERY_OPTIMIZER_STEP,
        )

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"final": FinalLine(self.context, self.model)}

    def build_training_data_loader(self) -> pytorch.DataLoader:
        data = Digits(2000, seed=1, augment=True)
        return pytorch.DataLoader(data, batch_size=self.context.get_per_slot_batch_size(), shuffle=True, num_workers=2)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(Digits(500, seed=2, augment=False), batch_size=100)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, torch.Tensor]:
        images, labels = batch
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        return {"loss": loss}

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, torch.Tensor]:
        images, labels = batch
        output = self.model(images)
        return {
            "validation_loss": nn.functional.cross_entropy(output, labels),
            "accuracy": (output.argmax(dim=1) == labels).float().mean(),
        }


def build_model(hidden: int, dropout: float) -> nn.Module:
    """Two convolutions and two layers."""
    return nn.Sequential(
        nn.Conv2d(1, 24, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(24, 32, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * (SIZE // 2) ** 2, hidden),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden, 10),
    )


def fingerprint(model: nn.Module) -> str:
    """A hash over the bytes of all parameters, in the order of the state dictionary."""
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
