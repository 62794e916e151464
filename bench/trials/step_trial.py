"""The model of ``reference/bare_loop.py`` as a trial class. Its context contains the files of the reference."""

from typing import Any

import torch
from clock import Clock
from digits_like import dataset, network

from determined import pytorch


class StepTrial(pytorch.PyTorchTrial):
    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        torch.set_num_threads(1)
        self.context = context
        self.clock = Clock(context.get_hparam("steps"))
        self.model = context.wrap_model(network())
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 0.05))

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(dataset(), batch_size=32, shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(dataset(), batch_size=512)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        self.clock.tick()
        pictures, labels = batch
        loss = torch.nn.functional.cross_entropy(self.model(pictures), labels)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        if self.clock.count == self.clock.steps:
            self.clock.write(self.context.get_hparam("result"))
        return {"loss": loss}

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        pictures, labels = batch
        return {"loss": torch.nn.functional.cross_entropy(self.model(pictures), labels)}
