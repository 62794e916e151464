"""A model of 50 MB with steps of 100 ms, as a trial class."""

import time
from typing import Any

import torch

from determined import pytorch

PARAMETERS = 50_000_000 // 4
STEP_SECONDS = 0.1


class PauseTrial(pytorch.PyTorchTrial):
    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        torch.set_num_threads(1)
        self.context = context
        model = torch.nn.Linear(1000, PARAMETERS // 1000, bias=False)
        self.model = context.wrap_model(model)
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), 0.001))

    def build_training_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 1000)), batch_size=1)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return self.build_training_data_loader()

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, Any]:
        until = time.perf_counter() + STEP_SECONDS
        loss = self.model(batch[0]).pow(2).mean()
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        time.sleep(max(0.0, until - time.perf_counter()))
        return {"loss": loss}

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, Any]:
        return {"loss": self.model(batch[0]).pow(2).mean()}
