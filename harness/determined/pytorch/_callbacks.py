"""Points in training at which a user's own code may run."""

from typing import Any


class PyTorchCallback:
    """Override what is needed. What ``state_dict`` returns is kept in every checkpoint.

    >>> class Count(PyTorchCallback):
    ...     def on_training_epoch_end(self, epoch_idx):
    ...         print("end of epoch", epoch_idx)
    """

    def on_trial_startup(self, first_batch_idx: int, checkpoint_uuid: str | None) -> None:
        """Once for each attempt, after the checkpoint is loaded."""

    def on_trial_shutdown(self) -> None:
        """Once for each attempt, at its end, a preempted one too."""

    def on_training_start(self) -> None:
        """Before the first batch of each attempt."""

    def on_training_epoch_start(self, epoch_idx: int) -> None:
        """Before the first batch of an epoch; not again when an attempt goes on inside one."""

    def on_training_epoch_end(self, epoch_idx: int) -> None:
        """After the last batch of an epoch."""

    def on_training_workload_end(self, avg_metrics: dict[str, Any], batch_metrics: list[dict[str, Any]]) -> None:
        """When training metrics are reported."""

    def on_validation_start(self) -> None:
        """Before a validation."""

    def on_validation_epoch_start(self) -> None:
        """Before the validation data."""

    def on_validation_epoch_end(self, outputs: list[Any]) -> None:
        """After the validation data, with what each batch gave."""

    def on_validation_end(self, metrics: dict[str, Any]) -> None:
        """With the metrics of the validation."""

    def on_checkpoint_load_start(self, checkpoint: dict[str, Any] | None) -> None:
        """With what was read, before it is used."""

    def on_checkpoint_save_start(self, checkpoint: dict[str, Any]) -> None:
        """With what will be written; may add to it."""

    def on_checkpoint_write_end(self, checkpoint_dir: str) -> None:
        """At the chief, when the files are written and not yet stored; may add files."""

    def on_checkpoint_upload_end(self, uuid: str) -> None:
        """When the checkpoint is stored and reported."""

    def on_checkpoint_end(self, checkpoint_dir: str) -> None:
        """Deprecated: like ``on_checkpoint_write_end``."""

    def state_dict(self) -> dict[str, Any]:
        """What a resumed trial needs."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what ``state_dict`` returned."""
