"""``DetCallback`` for a Hugging Face ``transformers.Trainer``."""

import importlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from determined import core
from determined_launch.version import __version__

try:
    transformers: Any = importlib.import_module("transformers")
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"determined.transformers needs Hugging Face transformers, but {missing.name} is not installed: pip install "
        "transformers accelerate, or select an environment.image that has them",
        name=missing.name,
    ) from None

__all__ = ["DetCallback"]

logger = logging.getLogger(__name__)
FOLDER = "determined-checkpoint"
_VALIDATION = "eval_"
_Base: Any = transformers.TrainerCallback


class DetCallback(_Base):  # type: ignore[misc]  # of a package that may be missing
    """Connects a ``Trainer`` with the cluster: reports what it logs and evaluates, stores the checkpoints that it
    saves, reports progress, and saves and stops when the experiment is paused.

    A later attempt finds the newest checkpoint in ``args.resume_from_checkpoint``; pass it to ``trainer.train``.

    Args:
        core_context: the context of :func:`determined.core.init`. With several slots it has a ``DistributedContext``.
        args: the ``TrainingArguments`` of the Trainer.
        filter_metrics: names of the metrics to report; None for all.
        user_data: entries for the metadata of each checkpoint.

    Attributes:
        resume_from_checkpoint: folder of the checkpoint to continue from, or None.

    Raises:
        StorageError: the newest checkpoint cannot be downloaded.

    Example:
        >>> with core.init() as core_context:  # doctest: +SKIP
        ...     callback = DetCallback(core_context, args)
        ...     trainer = Trainer(model, args, train_dataset=data, callbacks=[callback])
        ...     trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
    """

    def __init__(
        self,
        core_context: core.Context,
        args: Any,  # noqa: ANN401  # TrainingArguments
        filter_metrics: Sequence[str] | None = None,
        user_data: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self._core = core_context
        self._is_chief = core_context.distributed.rank == 0
        self._names = None if filter_metrics is None else frozenset(filter_metrics)
        self._user_data = dict(user_data or {})
        self._progress = 0.0
        self._stored: int | None = None
        self._is_preempted = False
        self.resume_from_checkpoint: str | None = None
        info = core.get_cluster_info()
        if info is not None and info.latest_checkpoint is not None:
            folder = Path(args.output_dir, FOLDER)
            core_context.checkpoint.download(info.latest_checkpoint, folder)
            self.resume_from_checkpoint = args.resume_from_checkpoint = str(folder)
            logger.info("continuing from checkpoint %s", info.latest_checkpoint)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:  # noqa: ANN401
        """Reports what the Trainer logs: as a validation if it is one, else as training metrics.

        Args:
            args: not used.
            state: state of the Trainer, with ``global_step``.
            control: not used.
            logs: values by name.
        """
        values = {name: value for name, value in (logs or {}).items() if _is_number(value) and self._is_wanted(name)}
        values.pop("epoch", None)
        validation = {name: value for name, value in values.items() if name.startswith(_VALIDATION)}
        training = {name: value for name, value in values.items() if name not in validation}
        if not self._is_chief:
            return
        if validation:
            self._core.train.report_validation_metrics(state.global_step, validation)
        elif training:
            self._core.train.report_training_metrics(state.global_step, training)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ANN401  # Trainer's
        """Reports the progress; saves and stops if the trial is preempted.

        Args:
            args: not used.
            state: state of the Trainer, with ``global_step`` and ``max_steps``.
            control: switches of the Trainer, which this sets.
        """
        progress = state.global_step / state.max_steps if state.max_steps > 0 else 0.0
        if self._is_chief and progress - self._progress >= 0.01:
            self._progress = progress
            self._core.train.report_progress(min(1.0, progress))
        if self._core.preempt.should_preempt():
            self._is_preempted = control.should_save = control.should_training_stop = True
            control.should_evaluate = False
            logger.info("preempted after %d steps; a later attempt continues from there", state.global_step)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ANN401  # Trainer's
        """Keeps a preempted trial from evaluating, for which it would hold its slots longer.

        Args:
            args: not used.
            state: not used.
            control: switches of the Trainer, which this sets.
        """
        if self._is_preempted:
            control.should_evaluate = False

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ANN401  # Trainer's
        """Stores the checkpoint that the Trainer has saved.

        Args:
            args: the arguments of the Trainer, with ``output_dir``.
            state: state of the Trainer, with ``global_step``.
            control: not used.
        """
        if self._stored == state.global_step:
            return
        folder = Path(args.output_dir, f"checkpoint-{state.global_step}")
        metadata = {
            **self._user_data,
            "steps_completed": state.global_step,
            "determined_version": __version__,
            "framework": f"transformers-{transformers.__version__}",
            "format": "transformers",
        }
        if self._core.distributed.size > 1:
            self._core.checkpoint.upload(folder if folder.exists() else None, metadata, shard=True)
        else:
            self._core.checkpoint.upload(folder, metadata)
        self._stored = state.global_step

    def _is_wanted(self, name: str) -> bool:
        return self._names is None or name in self._names


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
