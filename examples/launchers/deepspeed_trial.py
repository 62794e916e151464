"""The same network as a DeepSpeedTrial: micro batches, and with ZeRO the optimizer's state spread over the slots."""

import logging
from typing import Any

import deepspeed as engines
import torch
from spirals import DEFAULTS, fingerprint, network, points
from torch import nn

import determined as det
from determined import pytorch
from determined.pytorch import deepspeed


class FinalLine(pytorch.PyTorchCallback):
    """At the end of training prints a hash over all parameters."""

    def __init__(self, context: deepspeed.DeepSpeedTrialContext, model: nn.Module) -> None:
        self.context = context
        self.model = model

    def on_trial_shutdown(self) -> None:
        if self.context.current_train_batch() + 1 >= self.context.get_hparam("batches"):
            print(f"final parameters sha256: {fingerprint(self.model)}", flush=True)


class SpiralTrial(deepspeed.DeepSpeedTrial):
    """Two micro batches make a batch; the engine averages their gradients and takes the step."""

    def __init__(self, context: deepspeed.DeepSpeedTrialContext) -> None:
        self.context = context
        model = network(context.get_hparam("hidden"), context.get_hparam("dropout"))
        config = deepspeed.overwrite_deepspeed_config(
            "ds_config.json",
            {
                "train_batch_size": context.get_hparam("global_batch_size"),
                "optimizer": {"params": {"lr": context.get_hparam("learning_rate") / 10}},
                "zero_optimization": {"stage": context.get_hparams().get("zero_stage", 1)},
            },
        )
        self.engine, *_ = engines.initialize(model=model, model_parameters=model.parameters(), config=config)
        context.wrap_model_engine(self.engine)

    def build_callbacks(self) -> dict[str, pytorch.PyTorchCallback]:
        return {"final": FinalLine(self.context, self.engine)}

    def build_training_data_loader(self) -> pytorch.DataLoader:
        size = self.context.get_train_micro_batch_size_per_gpu()
        return pytorch.DataLoader(points(400, seed=1), batch_size=size, shuffle=True)

    def build_validation_data_loader(self) -> pytorch.DataLoader:
        return pytorch.DataLoader(points(150, seed=2), batch_size=50)

    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> dict[str, torch.Tensor]:
        where, arm = self.context.to_device(next(dataloader_iter))
        loss = nn.functional.cross_entropy(self.engine(where), arm)
        self.engine.backward(loss)
        self.engine.step()
        return {"loss": loss}

    def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> dict[str, torch.Tensor]:
        where, arm = self.context.to_device(next(dataloader_iter))
        output = self.engine(where)
        return {
            "validation_loss": nn.functional.cross_entropy(output, arm),
            "accuracy": (output.argmax(dim=1) == arm).float().mean(),
        }


def main() -> None:
    """The loop in the user's hand; off the cluster ``deepspeed --num_gpus 2 deepspeed_trial.py`` does."""
    info = det.get_cluster_info()
    with deepspeed.init(hparams=DEFAULTS if info is None else info.trial.hparams) as context:
        deepspeed.Trainer(SpiralTrial(context), context).fit(
            max_length=pytorch.Batch(context.get_hparam("batches")),
            reporting_period=pytorch.Batch(5),
            validation_period=pytorch.Batch(10),
            checkpoint_period=pytorch.Batch(20),
        )


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(levelname)s: %(message)s")
    main()
