"""The class that a user writes."""

import abc
from typing import Any, ClassVar

import torch

from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._reducer import Reducer

TorchData = dict[str, torch.Tensor] | list[torch.Tensor] | tuple[torch.Tensor, ...] | torch.Tensor


class Trial(abc.ABC):
    """What every kind of trial has; users derive from one of the kinds."""

    kind: ClassVar[str]
    """The name under which errors and checkpoints know it."""

    @abc.abstractmethod
    def train_batch(self, batch: Any, /, epoch_idx: int, batch_idx: int) -> Any:
        """One step: a loss, or a dictionary of metrics. ``batch_idx`` counts over all epochs."""

    @abc.abstractmethod
    def build_training_data_loader(self) -> Any:
        """A :class:`determined.pytorch.DataLoader`."""

    @abc.abstractmethod
    def build_validation_data_loader(self) -> Any:
        """A :class:`determined.pytorch.DataLoader`."""

    def build_callbacks(self) -> dict[str, PyTorchCallback]:
        """Callbacks by name; the name is the key of their state in checkpoints."""
        return {}

    def evaluate_batch(self, batch: Any, /, batch_idx: int) -> dict[str, Any]:
        """Metrics of one batch of validation data."""
        raise NotImplementedError

    def evaluate_full_dataset(self, data_loader: Any) -> dict[str, Any]:
        """Metrics of the whole validation data, at the chief alone."""
        raise NotImplementedError

    def evaluation_reducer(self) -> Reducer | dict[str, Reducer]:
        """How metrics of batches become one; one for all or one a metric."""
        return Reducer.AVG


class PyTorchTrial(Trial):
    """Model, data and what is done with a batch. Exactly one of the ``evaluate`` methods is written.

    The loop around it belongs to :class:`determined.pytorch.Trainer`.
    """

    kind = "PyTorchTrial"
    trial_context_class = PyTorchTrialContext

    @abc.abstractmethod
    def __init__(self, context: PyTorchTrialContext) -> None:
        """Makes models and optimizers and wraps them with the context."""

    def get_batch_length(self, batch: Any) -> int:
        """How many records a batch has."""
        if isinstance(batch, torch.Tensor):
            return len(batch)
        values = list(batch.values()) if isinstance(batch, dict) else list(batch)
        return len(values[0])
