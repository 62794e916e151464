"""Runs in each rank under a launcher: successive attempts of a trial, each preempted at a scripted call.

Argument: JSON of ``kind``, ``store``, and ``attempts`` with ``preempt_at``, ``latest`` (a uuid or "previous") and, for
engines, ``stage``. Writes one line ``OUT`` + JSON for each attempt.
"""

import hashlib
import json
import sys

import torch
from torch import nn

from determined import core, pytorch
from determined.pytorch import _preempt_poll, _rng, deepspeed

FIT = {
    "max_length": pytorch.Batch(15),
    "reporting_period": pytorch.Batch(2),
    "validation_period": pytorch.Batch(5),
    "checkpoint_period": pytorch.Batch(10),
}
SEED = 11


class Scripted(core.DummyPreemptContext):
    def __init__(self, at):
        self.at, self.asked, self.acknowledged = at, 0, False

    def should_preempt(self, auto_ack=True):
        self.asked += 1
        return self.at is not None and self.asked >= self.at

    def acknowledge_preemption_signal(self):
        self.acknowledged = True


class Counter(pytorch.PyTorchCallback):
    reports = 0

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        self.reports += 1
        avg_metrics["reports_so_far"] = self.reports

    def state_dict(self):
        return {"reports": self.reports}

    def load_state_dict(self, state_dict):
        self.reports = state_dict["reports"]


def points(count):
    draw = torch.Generator().manual_seed(count)
    positions = torch.randn(count, 6, generator=draw)
    return torch.utils.data.TensorDataset(positions, (positions[:, 0] > positions[:, 1]).long())


class Drift(nn.Module):
    """A buffer that influences training."""

    def __init__(self):
        super().__init__()
        self.register_buffer("level", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.level.mul_(0.9).add_(0.1 * x.detach().mean())
        return x - self.level


class Shared:
    """Data, metrics and a reducer of both kinds of trial."""

    def build_callbacks(self):
        return {"counter": Counter()}

    def build_training_data_loader(self):
        return pytorch.DataLoader(points(50), batch_size=4, shuffle=True)

    def build_validation_data_loader(self):
        return pytorch.DataLoader(points(30), batch_size=5)

    def metrics(self, output, label):
        self.count.update(len(label))
        return {"validation_loss": nn.functional.cross_entropy(output, label), "draw": torch.rand(())}

    def body(self):
        return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), Drift(), nn.Dropout(0.3))


class Two(Shared, pytorch.PyTorchTrial):
    """Two models with an optimizer each, gradient clipping, and accumulation of two batches."""

    def __init__(self, context):
        self.context = context
        self.count = context.wrap_reducer(sum, name="seen")
        self.first = context.wrap_model(self.body())
        self.second = context.wrap_model(nn.Linear(16, 2))
        self.one = context.wrap_optimizer(torch.optim.SGD(self.first.parameters(), lr=0.1, momentum=0.9))
        self.two = context.wrap_optimizer(torch.optim.Adam(self.second.parameters(), lr=0.01))
        self.rate = context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.one, step_size=2, gamma=0.7),
            pytorch.LRScheduler.StepMode.STEP_EVERY_OPTIMIZER_STEP,
        )

    def train_batch(self, batch, epoch_idx, batch_idx):
        positions, label = batch
        self.count.update(len(label))
        loss = nn.functional.cross_entropy(self.second(self.first(positions)), label)
        self.context.backward(loss)
        for optimizer in (self.one, self.two):
            self.context.step_optimizer(optimizer, clip_grads=lambda p: nn.utils.clip_grad_norm_(p, 0.5))
        return {"loss": loss, "draw": torch.rand(())}

    def evaluate_batch(self, batch, batch_idx):
        return self.metrics(self.second(self.first(batch[0])), batch[1])


class Engine(Shared, deepspeed.DeepSpeedTrial):
    """One engine of two micro batches per batch, with a scheduler of its own."""

    def __init__(self, context):
        import deepspeed as engines

        self.context = context
        self.count = context.wrap_reducer(sum, name="seen")
        model = nn.Sequential(self.body(), nn.Linear(16, 2))
        config = {
            "train_micro_batch_size_per_gpu": 4,
            "gradient_accumulation_steps": 2,
            "gradient_clipping": 0.5,
            "steps_per_print": 10**9,
            "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
            "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 8}},
            "zero_optimization": {"stage": context.get_hparam("stage")},
        }
        self.engine, *_ = engines.initialize(model=model, model_parameters=model.parameters(), config=config)
        context.wrap_model_engine(self.engine)

    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        positions, label = next(dataloader_iter)
        self.count.update(len(label))
        loss = nn.functional.cross_entropy(self.engine(positions), label)
        self.engine.backward(loss)
        self.engine.step()
        return {"loss": loss, "draw": torch.rand(())}

    def evaluate_batch(self, dataloader_iter, batch_idx):
        positions, label = next(dataloader_iter)
        return self.metrics(self.engine(positions), label)


def fresh(first, core_context, kind, attempt):
    """Returns a new context, like ``init``, on the Core API context of the process."""
    train = core_context.train = core.DummyTrainContext()
    preempt = core_context.preempt = Scripted(attempt["preempt_at"])
    common = {"hparams": attempt, "exp_conf": first.get_experiment_config(), "trial_seed": SEED}
    _rng.seed_all(_rng.mix(SEED, 0))
    if kind == "deepspeed":
        return train, preempt, deepspeed.DeepSpeedTrialContext(core_context, **common)
    averaging = first._averaging  # noqa: SLF001  # a launcher starts it once in a process
    created = pytorch.PyTorchTrialContext(
        core_context, aggregation_frequency=2, averaging=averaging, device=first.device, **common
    )
    return train, preempt, created


def main():
    request = json.loads(sys.argv[1])
    kind = request["kind"]
    _preempt_poll.SECONDS_BETWEEN = 0.0  # should_preempt asks at every step, so that call numbers are steps
    init = deepspeed.init if kind == "deepspeed" else pytorch.init
    trainer, trial = (deepspeed.Trainer, Engine) if kind == "deepspeed" else (pytorch.Trainer, Two)
    config = {"checkpoint_storage": {"type": "directory", "container_path": request["store"]}}
    previous = None
    with init(hparams={}, exp_conf=config) as first:
        core_context = first._core  # noqa: SLF001  # trial contexts have no public one
        for attempt in request["attempts"]:
            stored = []
            core_context.checkpoint._report = lambda uuid, _, stored=stored: stored.append(uuid)  # noqa: SLF001  # off the cluster it does nothing
            train, preempt, context = fresh(first, core_context, kind, attempt)
            latest = previous if attempt["latest"] == "previous" else attempt["latest"]
            trainer(trial(context), context).fit(**FIT, latest_checkpoint=latest)
            digest = hashlib.sha256()
            for model in context.models:
                for value in model.parameters():
                    digest.update(value.detach().numpy().tobytes())
            previous = context.distributed.broadcast(stored[-1] if stored else latest)
            out = {
                "rank": context.distributed.rank,
                "size": context.distributed.size,
                "reports": train.reports,
                "stored": previous,
                "steps": context.current_train_batch() + 1,
                "acknowledged": preempt.acknowledged,
                "asked": preempt.asked,
                "weights": digest.hexdigest(),
            }
            print("\nOUT" + json.dumps(out), flush=True)


if __name__ == "__main__":
    main()
