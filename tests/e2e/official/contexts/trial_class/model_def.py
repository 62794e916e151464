"""A PyTorchTrial that prints its reports."""

import json
import os
import time

import torch

import determined
from determined import pytorch

print("library:", determined.__file__, "user:", os.getuid(), flush=True)


class ReportPrinter(pytorch.PyTorchCallback):
    def on_training_workload_end(self, avg_metrics, batch_metrics):
        print("reported", json.dumps({"loss": float(avg_metrics["loss"])}), flush=True)


class Line(pytorch.PyTorchTrial):
    def __init__(self, context):
        self.context = context
        self.model = context.wrap_model(torch.nn.Linear(1, 1))
        self.optimizer = context.wrap_optimizer(torch.optim.SGD(self.model.parameters(), lr=0.01))
        self.seconds = context.get_hparam("seconds")

    def train_batch(self, batch, epoch_idx, batch_idx):
        loss = self._loss(batch)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer)
        time.sleep(self.seconds)
        return {"loss": loss}

    def evaluate_batch(self, batch):
        return {"loss": self._loss(batch)}

    def build_callbacks(self):
        return {"reports": ReportPrinter()}

    def build_training_data_loader(self):
        x = torch.arange(32.0).reshape(-1, 1) / 32
        return pytorch.DataLoader(torch.utils.data.TensorDataset(x, 2 * x), batch_size=4)

    build_validation_data_loader = build_training_data_loader

    def _loss(self, batch):
        x, y = batch
        return ((self.model(x) - y) ** 2).mean()
