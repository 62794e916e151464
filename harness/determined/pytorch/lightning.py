"""``DeterminedCallback`` for PyTorch Lightning, of the package ``lightning`` or ``pytorch_lightning``."""

import importlib
import logging
import sys
from pathlib import Path
from typing import Any

from determined import core
from determined_launch.version import __version__

__all__ = ["DeterminedCallback"]

logger = logging.getLogger(__name__)
FILE = "lightning.ckpt"
FOLDER = "determined-checkpoint"
_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _load() -> Any:  # noqa: ANN401  # a module
    """Returns the package that the script uses: the one that it has imported, else the one that is installed."""
    for name in sorted(_PACKAGES, key=lambda each: each not in sys.modules):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name not in (name, name.partition(".")[0]):
                raise
    raise ModuleNotFoundError(
        "determined.pytorch.lightning needs PyTorch Lightning, which is not installed: pip install pytorch-lightning, "
        "or select an environment.image that has it",
        name=_PACKAGES[-1],
    )


lightning = _load()
_Base: Any = lightning.Callback


class DeterminedCallback(_Base):  # type: ignore[misc]  # of one of two packages
    """Connects a ``Trainer`` with the cluster: reports metrics and progress, stores a checkpoint after epochs, and
    saves and stops when the experiment is paused.

    A later attempt finds the newest checkpoint in ``ckpt_path``; pass it to ``trainer.fit``. Lightning restores its
    optimizers, loops and random state, and reads the data of an epoch from the start.

    Args:
        core_context: the context of :func:`determined.core.init`. With several slots it has a ``DistributedContext``.
        train_metrics_report_period: number of optimizer steps between two reports of training metrics.
        checkpoint_epochs: number of epochs between checkpoints; 0 saves at the end and at a preemption only.

    Attributes:
        ckpt_path: file of the checkpoint to continue from, or None.

    Raises:
        ValueError: a period is not allowed.
        StorageError: the newest checkpoint cannot be downloaded.

    Example:
        >>> with core.init() as core_context:  # doctest: +SKIP
        ...     callback = DeterminedCallback(core_context)
        ...     trainer = pl.Trainer(max_epochs=10, callbacks=[callback], enable_checkpointing=False)
        ...     trainer.fit(model, data, validation_data, ckpt_path=callback.ckpt_path)
    """

    def __init__(
        self, core_context: core.Context, *, train_metrics_report_period: int = 100, checkpoint_epochs: int = 1
    ) -> None:
        super().__init__()
        if train_metrics_report_period < 1:
            raise ValueError(f"train_metrics_report_period must be at least 1: {train_metrics_report_period}")
        if checkpoint_epochs < 0:
            raise ValueError(f"checkpoint_epochs must not be negative: {checkpoint_epochs}")
        self._core = core_context
        self._is_chief = core_context.distributed.rank == 0
        self._period = train_metrics_report_period
        self._epochs = checkpoint_epochs
        self._stored: int | None = None
        self._reported = 0
        self._is_preempted = False
        self.ckpt_path: str | None = None
        info = core.get_cluster_info()
        if info is not None and info.latest_checkpoint is not None:
            core_context.checkpoint.download(info.latest_checkpoint, FOLDER)
            self.ckpt_path = str(Path(FOLDER, FILE))
            logger.info("continuing from checkpoint %s", info.latest_checkpoint)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401  # Lightning's
        """Counts the optimizer steps from those of the checkpoint on.

        Args:
            trainer: the Trainer.
            pl_module: not used.
        """
        self._reported = trainer.global_step

    def on_train_batch_end(
        self,
        trainer: Any,  # noqa: ANN401  # Lightning's, as the next three
        pl_module: Any,  # noqa: ANN401
        outputs: Any,  # noqa: ANN401
        batch: Any,  # noqa: ANN401
        batch_idx: int,
    ) -> None:
        """Reports training metrics if they are due; saves and stops if the trial is preempted.

        Args:
            trainer: the Trainer.
            pl_module: not used.
            outputs: result of the training step; its ``loss`` is reported.
            batch: not used.
            batch_idx: not used.
        """
        if self._is_preempted:
            return
        step = trainer.global_step
        # a step may take several batches, and a batch several steps
        if self._is_chief and step // self._period > self._reported // self._period:
            self._reported = step
            loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
            logged = {**({} if loss is None else {"loss": loss}), **trainer.logged_metrics}
            self._core.train.report_training_metrics(step, _numbers(logged))
        if self._core.preempt.should_preempt():
            self._save(trainer)
            self._is_preempted = trainer.should_stop = True
            # until these are met, Lightning ignores should_stop
            trainer.fit_loop.min_epochs = trainer.fit_loop.epoch_loop.min_steps = None
            logger.info("preempted after %d steps; a later attempt continues from there", step)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401  # Lightning's
        """Reports the metrics of a validation, unless it is the check before the training.

        Args:
            trainer: the Trainer.
            pl_module: not used.
        """
        if self._is_chief and not trainer.sanity_checking and not self._is_preempted:
            self._core.train.report_validation_metrics(trainer.global_step, _numbers(trainer.callback_metrics))

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401  # Lightning's
        """Reports the progress, and stores a checkpoint if one is due.

        Args:
            trainer: the Trainer.
            pl_module: not used.
        """
        if self._is_preempted:
            return
        epochs = trainer.current_epoch + 1
        if self._is_chief and trainer.max_epochs and trainer.max_epochs > 0:
            self._core.train.report_progress(min(1.0, epochs / trainer.max_epochs))
        if self._epochs and epochs % self._epochs == 0:
            self._save(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401  # Lightning's
        """Stores the last checkpoint if the newest one is older.

        Args:
            trainer: the Trainer.
            pl_module: not used.
        """
        self._save(trainer)

    def _save(self, trainer: Any) -> None:  # noqa: ANN401  # Lightning's
        """Every worker takes part in Lightning's save; the chief stores the file."""
        step = trainer.global_step
        if self._stored == step:
            return
        self._stored = step
        if not self._is_chief:
            trainer.save_checkpoint(trainer.strategy.broadcast(None))
            return
        metadata = {
            "steps_completed": step,
            "determined_version": __version__,
            "framework": f"lightning-{lightning.__version__}",
            "format": "lightning",
        }
        with self._core.checkpoint.store_path(metadata) as (folder, _uuid):
            trainer.save_checkpoint(trainer.strategy.broadcast(str(folder / FILE)))


def _numbers(values: Any) -> dict[str, float]:  # noqa: ANN401  # tensors by name
    return {name: float(value) for name, value in values.items() if getattr(value, "numel", lambda: 1)() == 1}
