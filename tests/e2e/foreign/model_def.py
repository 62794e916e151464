"""A second model for tests of resume: alternating optimizers, BatchNorm, and state in a callback and in a reducer.

It was written before the trainer, from the public interface alone, and never adapted to it.
"""

import hashlib
import random

import numpy as np
import torch
from torch import nn

from determined import pytorch


class Spirals(torch.utils.data.Dataset):
    """Points of two noisy spirals. Each access jitters a point with draws of NumPy, Python and torch."""

    def __init__(self, size, jitter):
        draw = np.random.RandomState(7)
        label = np.arange(size) % 2
        angle = draw.uniform(0.5, 3.0, size) * np.pi
        radius = angle / 10.0
        side = np.where(label == 0, 1.0, -1.0)
        self.points = np.stack([side * radius * np.cos(angle), side * radius * np.sin(angle)], axis=1)
        self.points += draw.normal(0.0, 0.02, self.points.shape)
        self.labels = label
        self.jitter = jitter

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        point = torch.tensor(self.points[index], dtype=torch.float32)
        if self.jitter:
            point = point + float(np.random.normal(0.0, 0.01)) + 0.01 * torch.randn(2)
            if random.random() < 0.1:
                point = point * random.uniform(0.9, 1.1)
        return point, torch.tensor(int(self.labels[index]))


class SeenPoints(pytorch.MetricReducer):
    """Returns the mean distance from the origin of all points since the last reset. Counts its resets."""

    def __init__(self):
        self.lives = 0
        self.reset()

    def reset(self):
        self.lives += 1
        self.total = 0.0
        self.count = 0

    def update(self, batch):
        self.total += float(batch.norm(dim=1).sum())
        self.count += len(batch)

    def per_slot_reduce(self):
        return self.total, self.count

    def cross_slot_reduce(self, per_slot_metrics):
        total = sum(part[0] for part in per_slot_metrics)
        count = sum(part[1] for part in per_slot_metrics)
        return total / max(1, count)


class Temperature(pytorch.PyTorchCallback):
    """Decreases at the end of each epoch and at each report. The loss depends on it, so a lost state changes the
    weights."""

    def __init__(self):
        self.value = 2.0
        self.reports = 0

    def on_training_epoch_end(self, epoch_idx):
        self.value *= 0.9

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        self.reports += 1
        self.value *= 0.999

    def state_dict(self):
        return {"value": self.value, "reports": self.reports}

    def load_state_dict(self, state_dict):
        self.value = state_dict["value"]
        self.reports = state_dict["reports"]


class FinalLine(pytorch.PyTorchCallback):
    """Prints the hash of all parameters after the last batch."""

    def __init__(self, context, models):
        self.context = context
        self.models = models

    def on_trial_shutdown(self):
        last = int(self.context.get_experiment_config()["searcher"]["max_length"]["batches"])
        if self.context.current_train_batch() + 1 < last:
            return
        digest = hashlib.sha256()
        for model in self.models:
            for value in model.state_dict().values():
                digest.update(value.detach().cpu().numpy().tobytes())
        print(f"final parameters sha256: {digest.hexdigest()}", flush=True)


class ForeignTrial(pytorch.PyTorchTrial):
    """An encoder and a head with an optimizer each. Even batches step one of them, odd batches the other."""

    def __init__(self, context):
        self.context = context
        width = context.get_hparam("width")
        self.encoder = context.wrap_model(
            nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.1))
        )
        self.head = context.wrap_model(nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)))
        self.encoder_optimizer = context.wrap_optimizer(torch.optim.Adam(self.encoder.parameters(), lr=0.01))
        self.head_optimizer = context.wrap_optimizer(
            torch.optim.SGD(self.head.parameters(), lr=0.05, momentum=0.9, nesterov=True)
        )
        self.scheduler = context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.ExponentialLR(self.encoder_optimizer, gamma=0.8),
            step_mode=pytorch.LRScheduler.StepMode.STEP_EVERY_EPOCH,
        )
        self.temperature = Temperature()
        self.seen = context.wrap_reducer(SeenPoints(), name="distance")

    def build_callbacks(self):
        return {"temperature": self.temperature, "final": FinalLine(self.context, [self.encoder, self.head])}

    def build_training_data_loader(self):
        return pytorch.DataLoader(
            Spirals(150, jitter=True), batch_size=self.context.get_per_slot_batch_size(), shuffle=True, num_workers=1
        )

    def build_validation_data_loader(self):
        return pytorch.DataLoader(Spirals(70, jitter=False), batch_size=32)

    def train_batch(self, batch, epoch_idx, batch_idx):
        points, labels = batch
        self.seen.update(points)
        loss = nn.functional.cross_entropy(self.head(self.encoder(points)) / self.temperature.value, labels)
        self.context.backward(loss)
        if batch_idx % 2 == 0:
            self.context.step_optimizer(self.encoder_optimizer, auto_zero_grads=False)
            self.encoder_optimizer.zero_grad()
        else:
            self.context.step_optimizer(
                self.head_optimizer, clip_grads=lambda params: nn.utils.clip_grad_norm_(params, 1.0)
            )
        return {"loss": loss, "temperature": self.temperature.value}

    def evaluate_batch(self, batch, batch_idx):
        points, labels = batch
        self.seen.update(points)
        out = self.head(self.encoder(points))
        noise = torch.rand(1)  # a draw inside validation must not advance the training streams
        return {
            "validation_loss": nn.functional.cross_entropy(out, labels),
            "accuracy": (out.argmax(dim=1) == labels).float().mean(),
            "noise": noise,
        }
