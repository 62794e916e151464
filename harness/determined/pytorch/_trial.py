"""``PyTorchTrial``: the class that a user subclasses."""

import abc
from typing import Any, ClassVar

import torch

from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._reducer import Reducer

TorchData = dict[str, torch.Tensor] | list[torch.Tensor] | tuple[torch.Tensor, ...] | torch.Tensor


class Trial(abc.ABC):
    """Base class of all kinds of trial; users subclass one of the kinds."""

    kind: ClassVar[str]
    """Name of the kind of trial in errors and checkpoints."""

    @abc.abstractmethod
    def train_batch(self, batch: Any, /, epoch_idx: int, batch_idx: int) -> Any:  # noqa: ANN401  # only the trial's author knows this type
        """Trains one batch and returns a loss or a dictionary of metrics.

        Args:
            batch: a batch of the training data, on this slot's device.
            epoch_idx: number of the epoch, from 0.
            batch_idx: number of the batch over all epochs, from 0.
        """

    @abc.abstractmethod
    def build_training_data_loader(self) -> Any:  # noqa: ANN401  # only the trial's author knows this type
        """Returns a :class:`determined.pytorch.DataLoader` of the training data."""

    @abc.abstractmethod
    def build_validation_data_loader(self) -> Any:  # noqa: ANN401  # only the trial's author knows this type
        """Returns a :class:`determined.pytorch.DataLoader` of the validation data."""

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        """Returns callbacks by name; checkpoints contain the state of each under its name."""
        return {}

    def evaluate_batch(self, batch: Any, /, batch_idx: int) -> dict[str, Any]:  # noqa: ANN401  # only the trial's author knows this type
        """Returns the metrics of one batch of validation data, by name.

        Args:
            batch: a batch of the validation data, on this slot's device.
            batch_idx: number of the batch in the validation, from 0.
        """
        raise NotImplementedError

    def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:  # noqa: ANN401  # only the trial's author knows this type
        """Returns the metrics of the whole validation data, by name; runs on the chief only.

        Args:
            data_loader: the loader of the validation data.
        """
        raise NotImplementedError

    def evaluation_reducer(self) -> Reducer | dict[str, Reducer]:
        """Returns the reducer for validation metrics: one for all metrics, or one for each metric name."""
        return Reducer.AVG


class PyTorchTrial(Trial):
    """Base class of PyTorch trials: models, data, and the training and evaluation of a batch.

    Override exactly one of ``evaluate_batch`` and ``evaluate_full_dataset``. :class:`determined.pytorch.Trainer` runs
    the training loop.
    """

    kind = "PyTorchTrial"
    trial_context_class = PyTorchTrialContext

    @abc.abstractmethod
    def __init__(self, context: PyTorchTrialContext) -> None:
        """Makes models and optimizers and wraps them with the context.

        Args:
            context: wraps models, optimizers and schedulers.
        """

    def get_batch_length(self, batch: Any) -> int:  # noqa: ANN401  # only the trial's author knows this type
        """Returns the number of records in a batch.

        Args:
            batch: a tensor, or a dictionary or sequence whose first value has one entry per record.
        """
        if isinstance(batch, torch.Tensor):
            return len(batch)
        values = list(batch.values()) if isinstance(batch, dict) else list(batch)
        return len(values[0])
