"""A PyTorchTrial, as it runs in one process, under torch.distributed and under horovod alike."""

import logging
from typing import Any

import torch
from spirals import DEFAULTS, fingerprint, network, points
from torch import nn

import determined as det
from determined import pytorch


class FinalLine(pytorch.PyTorchCallback):
    """At the end of training prints a hash over all parameters."""

    def __init__(self, context: pytorch.PyTorchTrialContext, model: nn.Module) -> None:
        self.context = context
        self.model = model

    def on_trial_shutdown(self) -> None:
        if self.context.current_train_batch() + 1 >= self.context.get_hparam("batches"):
            print(f"final parameters sha256: {fingerprint(self.model)}", flush=True)


class SpiralTrial(pytorch.PyTorchTrial):
    """Gradients are clipped, so they must be those of all slots before the step."""

    def __init__(self, context: pytorch.PyTorchTrialContext) -> None:
        self.context = context
        self.model = context.wrap_model(network(context.get_hparam("hidden"), context.get_hparam("dropout")))
        optimizer = torch.optim.SGD(self.model.parameters(), lr=context.get_hparam("learning_rate"), momentum=0.9)
        self.optimizer = context.wrap_optimizer(optimizer)
        self.scheduler = context.wrap_lr_scheduler(
            torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=10, gamma=0.8),
            step_mode=pytorch.LRScheduler.StepMode.STEP_EVERY_OPTIMIZER_STEP,
        )

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"final": FinalLine(self.context, self.model)}

    def build_training_data_loader(self) -> pytorch.DataLoader:
        size = self.context.get_per_slot_batch_size()
        return pytorch.DataLoader(points(400, seed=1), batch_size=size, shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(points(150, seed=2), batch_size=50)

    def train_batch(self, batch: Any, epoch_idx: int, batch_idx: int) -> dict[str, torch.Tensor]:
        where, arm = batch
        loss = nn.functional.cross_entropy(self.model(where), arm)
        self.context.backward(loss)
        self.context.step_optimizer(self.optimizer, clip_grads=lambda p: nn.utils.clip_grad_norm_(p, 1.0))
        return {"loss": loss}

    def evaluate_batch(self, batch: Any, batch_idx: int) -> dict[str, torch.Tensor]:
        where, arm = batch
        output = self.model(where)
        return {
            "validation_loss": nn.functional.cross_entropy(output, arm),
            "accuracy": (output.argmax(dim=1) == arm).float().mean(),
        }


def main() -> None:
    """The loop in the user's hand; off the cluster plain launchers do: ``torchrun``, ``horovodrun``."""
    info = det.get_cluster_info()
    with pytorch.init(hparams=DEFAULTS if info is None else info.trial.hparams) as context:
        pytorch.Trainer(SpiralTrial(context), context).fit(
            max_length=pytorch.Batch(context.get_hparam("batches")),
            reporting_period=pytorch.Batch(5),
            validation_period=pytorch.Batch(10),
            checkpoint_period=pytorch.Batch(20),
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    main()
