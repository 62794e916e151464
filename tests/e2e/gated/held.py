"""The launchers' example with a gate before each batch of rank 0. The other ranks wait for it in a collective."""

import os

from gates import gate

if os.environ.get("USE_DEEPSPEED"):
    from deepspeed_trial import SpiralTrial as Ungated
else:
    from pytorch_trial import SpiralTrial as Ungated


class SpiralTrial(Ungated):
    def train_batch(self, batch, epoch_idx, batch_idx):
        if self.context.distributed.rank == 0:
            gate(f"train-{batch_idx}", self.context._core)  # noqa: SLF001  # trial contexts have no public one
        return super().train_batch(batch, epoch_idx, batch_idx)
