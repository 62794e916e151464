"""Adapters between the trainer and each kind of trial."""

from collections.abc import Callable
from typing import Any, Protocol

import torch

from determined.pytorch import _rng
from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._checkpointer import Checkpointer
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._data import Batches, Data, DataLoader, PlainBatches, TrainingSource
from determined.pytorch._state import TrainingState
from determined.pytorch._trial import PyTorchTrial, Trial
from determined.pytorch._trial_context import TrialContext

TRAINING_DATA, VALIDATION_DATA = 1, 2


class TrialAdapter(Protocol):
    """Adapter of one trial."""

    @property
    def trial(self) -> Trial:
        """Returns the user's trial."""
        ...

    @property
    def context(self) -> TrialContext:
        """Returns the trial's context."""
        ...

    def training_data(self, loader: object) -> TrainingSource:
        """Returns the data of the training loop; an epoch has one item for each batch."""
        ...

    def validation_data(self, loader: object) -> Data:
        """Returns the data of a validation, one item for each call of ``evaluate_batch``."""
        ...

    def global_batch_size(self) -> int | None:
        """Returns the number of records in a batch over all slots; None if it is unknown."""
        ...

    def train_batch(self) -> Callable[[Any, int, int], Any]:
        """Returns a function that trains a batch: it takes item, epoch and number of the batch and returns metrics."""
        ...

    def keeping(
        self, callbacks: dict[str, PyTorchCallback], training: TrainingSource
    ) -> tuple[TrainingState, Checkpointer]:
        """Returns the training state and its checkpointer."""
        ...


class PyTorchAdapter:
    """Adapter of a :class:`PyTorchTrial`."""

    def __init__(self, trial: PyTorchTrial, context: PyTorchTrialContext) -> None:
        self.trial = trial
        self.context = context

    def training_data(self, loader: object) -> TrainingSource:
        return batches(self.context, loader, TRAINING_DATA, repeat=True)

    def validation_data(self, loader: object) -> Data:
        return batches(self.context, loader, VALIDATION_DATA, repeat=False)

    def global_batch_size(self) -> int | None:
        return self.context.get_hparams().get("global_batch_size")

    def train_batch(self) -> Callable[[Any, int, int], Any]:
        context, plain = self.context, self._by_precision()
        aggregation, averaging = context._aggregation, context._averaging  # noqa: SLF001  # hidden from trials, not from the trainer
        move = context.experimental.auto_to_device and context.device.type != "cpu"
        pauses = context.distributed.size > 1 and aggregation > 1
        if not move and not pauses:
            return plain

        def train(batch: object, epoch: int, steps: int) -> Any:  # noqa: ANN401  # only the trial's author knows this type
            data = context.to_device(batch) if move else batch
            if not pauses or (steps + 1) % aggregation == 0:
                return plain(data, epoch, steps)
            with averaging.pausing(context.models):
                return plain(data, epoch, steps)

        return train

    def _by_precision(self) -> Callable[[Any, int, int], Any]:
        """Returns the trial's ``train_batch``, in mixed precision after ``use_amp``."""
        context, plain = self.context, self.trial.train_batch
        if context._amp_scaler is None:  # noqa: SLF001  # hidden from trials, not from the trainer
            return plain

        def train(batch: object, epoch: int, steps: int) -> Any:  # noqa: ANN401  # only the trial's author knows this type
            with torch.autocast(context.device.type):
                metrics = plain(batch, epoch, steps)
            context._update_amp_scaler()  # noqa: SLF001  # hidden from trials, not from the trainer
            return metrics

        return train

    def keeping(
        self, callbacks: dict[str, PyTorchCallback], training: TrainingSource
    ) -> tuple[TrainingState, Checkpointer]:
        state = TrainingState(self.context, callbacks, training)
        return state, Checkpointer(self.trial, self.context, callbacks, state)


def batches(context: TrialContext, loader: object, purpose: int, *, repeat: bool) -> TrainingSource:
    """Returns this slot's share of a loader; with ``repeat`` all slots get equally many batches."""
    own = _rng.mix(context.get_trial_seed(), purpose)
    if isinstance(loader, DataLoader):
        peers = context.distributed
        return Batches(loader, seed=own, rank=peers.rank, size=peers.size, repeat=repeat)
    if not context.experimental.plain_loaders:
        raise TypeError(
            f"the data loaders of a trial must be determined.pytorch.DataLoader, not {type(loader).__name__}; or call "
            "context.experimental.disable_dataset_reproducibility_checks()"
        )
    return PlainBatches(loader, seed=own)
