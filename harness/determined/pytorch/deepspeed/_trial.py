"""The class that a user writes for DeepSpeed."""

import abc
from pathlib import Path
from typing import Any

from determined.pytorch._trial import Trial
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext


class DeepSpeedTrial(Trial):
    """Engines, data and what is done with a micro batch.

    The loop around it belongs to :class:`determined.pytorch.deepspeed.Trainer`.
    """

    kind = "DeepSpeedTrial"
    trial_context_class = DeepSpeedTrialContext

    @abc.abstractmethod
    def __init__(self, context: DeepSpeedTrialContext) -> None:
        """Makes engines by ``deepspeed.initialize`` and wraps them with the context."""

    @abc.abstractmethod
    def train_batch(self, dataloader_iter: Any, epoch_idx: int, batch_idx: int) -> Any:
        """Takes one micro batch from the iterator and gives it to ``engine.backward`` and ``engine.step``.

        Called once for each micro batch of a batch, with the same ``batch_idx``; metrics are averaged over them. After
        ``context.disable_auto_grad_accumulation()`` called once a batch. Returns a loss or a dictionary of metrics.
        """

    @abc.abstractmethod
    def evaluate_batch(self, dataloader_iter: Any, batch_idx: int) -> dict[str, Any]:
        """Takes one batch from the iterator and returns its metrics."""

    def save(self, context: DeepSpeedTrialContext, path: Path) -> None:
        """Writes every engine's files below ``path``; called at every slot, each with a folder of its own."""
        for number, engine in enumerate(context.models):
            engine.save_checkpoint(str(path), tag=f"model{number}", save_latest=False)  # type: ignore[operator]

    def load(self, context: DeepSpeedTrialContext, path: Path) -> None:
        """Reads what ``save`` wrote; ``path`` has the files of all slots."""
        load_engines(context, path, weights_only=False)


def load_engines(context: DeepSpeedTrialContext, path: Path, *, weights_only: bool) -> None:
    """The default of :meth:`DeepSpeedTrial.load`; with ``weights_only`` neither optimizer nor scheduler."""
    for number, engine in enumerate(context.models):
        loaded, _ = engine.load_checkpoint(str(path), tag=f"model{number}", load_module_only=weights_only)  # type: ignore[operator]
        if loaded is None:
            raise RuntimeError(
                f"the checkpoint has no files of engine {number}; did a trial with fewer engines make it?"
            )
