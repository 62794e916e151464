"""``DeterminedCallback``: reports, checkpoints, pause and resume for ``model.fit``."""

import logging
from typing import Any

import determined
from determined import core
from determined.errors import DeterminedError
from determined.keras import _state
from determined.keras._backend import keras

logger = logging.getLogger(__name__)


class DeterminedCallback(keras.callbacks.Callback):  # type: ignore[misc]  # keras has no types
    """Connects ``model.fit`` with the cluster: reports metrics, saves checkpoints, gives slots back and resumes.

    A preemption is seen after each batch with the torch backend, else after each epoch. Training resumes at the next
    batch: the batches of the epoch that are already trained are read from the data again, but not trained. With the
    torch backend a resumed training is equal to one without a pause, if each epoch reads all its data and the order
    of the data follows from the random streams of torch, NumPy and Python.

    Other callbacks start anew with each attempt, and see the batches that are only read as well.

    Args:
        core_context: the context of :func:`determined.core.init`.
        checkpoint: uuid of the checkpoint to load; None to start from the model's own weights.
        continue_id: name of this training, for example the number of the trial. If the checkpoint has the same name,
            its epoch and batch are restored too, otherwise only its weights.
        train_metrics_report_period: ``"epoch"``, or a number of batches.
        checkpoint_epochs: number of epochs between checkpoints; 0 saves at the end and at a preemption only.

    Raises:
        ValueError: a period is not allowed.
        DeterminedError: the trial has several slots, which Keras does not use here.

    >>> with core.init() as core_context:  # doctest: +SKIP
    ...     info = determined.get_cluster_info()
    ...     callback = DeterminedCallback(core_context, info.latest_checkpoint, str(info.trial.trial_id))
    ...     model.fit(x, y, epochs=10, validation_data=(a, b), callbacks=[callback], verbose=0)
    """

    def __init__(
        self,
        core_context: core.Context,
        checkpoint: str | None,
        continue_id: str,
        *,
        train_metrics_report_period: int | str = "epoch",
        checkpoint_epochs: int = 1,
    ) -> None:
        super().__init__()
        period = train_metrics_report_period
        if period != "epoch" and (not isinstance(period, int) or period < 1):
            raise ValueError(f'train_metrics_report_period must be "epoch" or a number of batches, not {period!r}')
        if checkpoint_epochs < 0:
            raise ValueError(f"checkpoint_epochs must not be negative: {checkpoint_epochs}")
        if core_context.distributed.size > 1:
            raise DeterminedError(
                f"determined.keras trains on one slot, but the trial has {core_context.distributed.size} workers: set "
                "resources.slots_per_trial to 1"
            )
        self.preempted = False
        self._core = core_context
        self._checkpoint = checkpoint
        self._continue_id = str(continue_id)
        self._report_period = None if period == "epoch" else int(period)
        self._checkpoint_epochs = checkpoint_epochs
        self._position = _state.Position()
        self._saved_at: int | None = None
        self._epoch_start: Any = None
        self._restored: _state.RestoredState | None = None
        self._batches_to_skip = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Loads the checkpoint and makes ``fit`` begin at its epoch.

        Args:
            logs: not used.
        """
        self.preempted = False
        if not _state.resumes_exactly():
            logger.info("a pause takes effect after an epoch: Keras' %s backend", keras.backend.backend())
        if self._checkpoint is None:
            return
        with self._core.checkpoint.restore_path(self._checkpoint) as folder:
            self._restored = _state.load(folder, self.model, self._continue_id)
        checkpoint, self._checkpoint = self._checkpoint, None
        if self._restored is None:
            logger.info("starting warm from checkpoint %s of another training", checkpoint)
            return
        self._position = self._restored.position
        self._saved_at = self._position.steps
        self.model._initial_epoch = self._position.epoch  # noqa: SLF001  # as Keras' BackupAndRestore does
        logger.info("continuing from checkpoint %s after %d batches", checkpoint, self._position.steps)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Restores the order of the data if the checkpoint is inside this epoch.

        Args:
            epoch: number of the epoch, from 0.
            logs: not used.
        """
        self._position.epoch = epoch
        restored, self._restored = self._restored, None
        if restored is None:
            self._epoch_start = _state.capture_streams()
            return
        if not self._position.batch:
            self._resume(restored)
            self.model.reset_metrics()
            self._epoch_start = _state.capture_streams()
            return
        _state.restore_streams(restored.epoch_start)
        self._epoch_start = restored.epoch_start
        self._skip(restored)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts the batch, reports if that is due, and stops if the trial is preempted.

        Args:
            batch: number of the batch in its epoch, from 0.
            logs: averages of the epoch so far, by name.
        """
        if self._batches_to_skip:
            self._batches_to_skip -= 1
            return
        position = self._position
        position.batch += 1
        position.steps += 1
        self.after_batch(logs or {})
        if self._is_last_batch() or self.model.stop_training or not _state.resumes_exactly():
            return
        if self._core.preempt.should_preempt():
            self._leave()

    def after_batch(self, logs: dict[str, Any]) -> None:
        """Reports the metrics of the epoch so far, if that is due.

        Args:
            logs: averages of the epoch so far, by name.
        """
        if self._report_period and self._position.steps % self._report_period == 0:
            self.report_training(logs)

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Ends the validation that follows a preemption inside an epoch.

        Args:
            batch: not used.
            logs: not used.
        """
        if self.preempted:
            self.model.stop_evaluating = True

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Reports the epoch, saves a checkpoint if one is due, and stops if the trial is preempted.

        Args:
            epoch: number of the epoch, from 0.
            logs: averages of the epoch and of its validation, by name.
        """
        if self.preempted:
            return
        values, position = logs or {}, self._position
        position.epoch, position.batch = epoch + 1, 0
        self.after_epoch(values)
        epochs = int(self.params.get("epochs") or 1)
        if self._checkpoint_epochs and position.epoch % self._checkpoint_epochs == 0:
            self.save()
        if position.epoch < epochs and not self.model.stop_training and self._core.preempt.should_preempt():
            self._leave()

    def after_epoch(self, logs: dict[str, Any]) -> None:
        """Reports training and validation metrics and the progress at the end of an epoch.

        Args:
            logs: averages of the epoch and of its validation, by name.
        """
        if self._report_period is None:
            self.report_training(logs)
        validation = {name: value for name, value in logs.items() if name.startswith("val_")}
        if validation:
            self.report_validation(validation)
        self._core.train.report_progress(min(1.0, self._position.epoch / int(self.params.get("epochs") or 1)))

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Saves the last checkpoint if the newest one is older.

        Args:
            logs: not used.
        """
        if not self.preempted:
            self.save()

    def report_training(self, logs: dict[str, Any]) -> None:
        """Reports averages over the epoch so far.

        Args:
            logs: averages by name.
        """
        values = {name: value for name, value in logs.items() if not name.startswith("val_")}
        self._core.train.report_training_metrics(self._position.steps, {**values, **self._counts()})

    def report_validation(self, metrics: dict[str, Any]) -> None:
        """Reports one validation; names begin with ``val_``.

        Args:
            metrics: values by name.
        """
        self._core.train.report_validation_metrics(self._position.steps, {**metrics, **self._counts()})
        self._position.validated_at = self._position.steps

    def save(self) -> None:
        """Saves a checkpoint, unless the newest one is of this batch."""
        if self._saved_at == self._position.steps:
            return
        metadata = {
            "steps_completed": self._position.steps,
            "determined_version": determined.__version__,
            "framework": f"keras-{keras.__version__}",
            "format": "keras",
        }
        with self._core.checkpoint.store_path(metadata) as (folder, uuid):
            _state.save(folder, self.model, self._position, self._continue_id, self._epoch_start)
        self._saved_at = self._position.steps
        logger.info("checkpoint %s after %d batches", uuid, self._position.steps)

    def _counts(self) -> dict[str, int]:
        return {"batches": self._position.steps, "epochs": self._position.epoch}

    def _is_last_batch(self) -> bool:
        """Returns True after the last batch of an epoch, whose end is due; epochs of unknown length have none."""
        return bool(self._position.batch == self.params.get("steps"))

    def _leave(self) -> None:
        self.save()
        self.preempted = self.model.stop_training = True
        logger.info("preempted after %d batches; a later attempt continues from there", self._position.steps)

    def _skip(self, restored: _state.RestoredState) -> None:
        """Makes ``fit`` read the batches before the checkpoint without training them."""
        left = self._batches_to_skip = self._position.batch
        train = self.model.train_function

        def read_only(data: Any) -> dict[str, Any]:  # noqa: ANN401  # keras has no types
            nonlocal left
            left -= 1
            if left == 0:
                self._resume(restored)
                self.model.train_function = train
            return {}

        self.model.train_function = read_only

    def _resume(self, restored: _state.RestoredState) -> None:
        if restored.values is not None:
            _state.write_values(self.model, restored.values)
        _state.restore_streams(restored.now)
