"""Callbacks: methods that the trainer calls at fixed points of training."""

from typing import Any


class PyTorchCallback:
    """Base class of callbacks: override the methods that you need. Checkpoints contain the result of ``state_dict``.

    >>> class Count(PyTorchCallback):
    ...     def on_training_epoch_end(self, epoch_idx):
    ...         print("end of epoch", epoch_idx)
    """

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        """Runs once per attempt, after the checkpoint is loaded.

        Args:
            first_batch_idx: number of the first batch that this attempt trains.
            checkpoint_uuid: the loaded checkpoint; None at the first attempt.
        """

    def on_trial_shutdown(self) -> None:
        """Runs once per attempt, at its end, also after a preemption."""

    def on_training_start(self) -> None:
        """Runs before the first batch of each attempt."""

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        """Runs before the first batch of an epoch, but not if an attempt continues inside an epoch.

        Args:
            epoch_idx: number of the epoch, from 0.
        """

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        """Runs after the last batch of an epoch.

        Args:
            epoch_idx: number of the epoch, from 0.
        """

    def on_training_workload_end(self, avg_metrics: dict[str, Any], batch_metrics: list[dict[str, Any]]) -> None:
        """Runs when training metrics are reported.

        Args:
            avg_metrics: averages since the last report, by name.
            batch_metrics: the metrics of each batch since the last report, in order.
        """

    def on_validation_start(self) -> None:
        """Runs before a validation."""

    def on_validation_epoch_start(self) -> None:
        """Runs before the first batch of validation data."""

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        """Runs after the last batch of validation data.

        Args:
            outputs: what ``evaluate_batch`` returned for each batch.
        """

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        """Runs after a validation.

        Args:
            metrics: validation metrics by name.
        """

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any] | None) -> None:
        """Runs after a checkpoint was read and before its state is loaded.

        Args:
            checkpoint: the content of the checkpoint.
        """

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        """Runs before a checkpoint is written.

        Args:
            checkpoint: the content of the checkpoint; the callback may add keys to it.
        """

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        """Runs on the chief after the files are written and before they are stored.

        Args:
            checkpoint_dir: folder with the files; the callback may add files to it.
        """

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        """Runs after the checkpoint is stored and reported.

        Args:
            uuid: identifier of the checkpoint.
        """

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Runs like :meth:`on_checkpoint_write_end`. Deprecated.

        Args:
            checkpoint_dir: folder with the files.
        """

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of this callback that checkpoints contain."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the state of this callback.

        Args:
            state_dict: what :meth:`state_dict` returned.
        """
