"""``DeepSpeedTrial``: the class that a user subclasses for DeepSpeed."""

import abc
from pathlib import Path
from typing import Any

from determined.pytorch._trial import Trial
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext


class DeepSpeedTrial(Trial):
    """Base class of DeepSpeed trials: engines, data, and the training and evaluation of a micro batch.

    :class:`determined.pytorch.deepspeed.Trainer` runs the training loop.
    """

    kind = "DeepSpeedTrial"
    trial_context_class = DeepSpeedTrialContext

    @abc.abstractmethod
    def __init__(self, context: DeepSpeedTrialContext) -> None:
        """Makes engines with ``deepspeed.initialize`` and wraps them with the context.

        Args:
            context: wraps engines.
        """

    @abc.abstractmethod
    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any:  # noqa: ANN401  # deepspeed has no types, and only the trial knows its batches
        """Trains one micro batch with ``engine.backward`` and ``engine.step``; returns a loss or metrics by name.

        The trainer calls this once for each micro batch of a batch and averages the metrics; after
        ``context.disable_auto_grad_accumulation()`` once per batch.

        Args:
            dataloader_iter: iterator over micro batches; take one from it.
            epoch_idx: number of the epoch, from 0.
            batch_idx: number of the batch over all epochs, from 0; equal for all micro batches of a batch.
        """

    @abc.abstractmethod
    def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> dict[str, Any]:  # noqa: ANN401  # deepspeed has no types, and only the trial knows its batches
        """Takes one batch from the iterator and returns its metrics by name.

        Args:
            dataloader_iter: iterator over the validation data.
            batch_idx: number of the batch in the validation, from 0.
        """

    def save(self, context: DeepSpeedTrialContext, path: Path) -> None:
        """Writes the files of every engine; runs on every slot.

        Args:
            context: has the engines in ``models``.
            path: this slot's own folder.
        """
        for number, engine in enumerate(context.models):
            engine.save_checkpoint(str(path), tag=f"model{number}", save_latest=False)

    def load(self, context: DeepSpeedTrialContext, path: Path) -> None:
        """Reads the files that :meth:`save` wrote; runs on every slot.

        Args:
            context: has the engines in ``models``.
            path: folder with the files of all slots.
        """
        load_engines(context, path, weights_only=False)


def load_engines(context: DeepSpeedTrialContext, path: Path, *, weights_only: bool) -> None:
    """Loads every engine; with ``weights_only`` neither optimizers nor schedulers.

    The default of ``DeepSpeedTrial.load``.
    """
    for number, engine in enumerate(context.models):
        loaded, _ = engine.load_checkpoint(str(path), tag=f"model{number}", load_module_only=weights_only)
        if loaded is None:
            raise RuntimeError(
                f"the checkpoint has no files of engine {number}; it may come from a trial with fewer engines"
            )
