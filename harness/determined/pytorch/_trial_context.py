"""The context that all kinds of trial share: hyperparameters, configuration, ranks, reducers."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from determined import core
from determined._configured_trial import ConfiguredTrial
from determined.pytorch._device import move
from determined.pytorch._experimental import ExperimentalContext
from determined.pytorch._gradient_sync import GradientSync, NoSync
from determined.pytorch._lr_scheduler import LRScheduler
from determined.pytorch._reducer import MetricReducer, SimpleMetricReducer

logger = logging.getLogger(__name__)


@dataclass
class TrainingPosition:
    """The place of the training loop, which writes it; the context shows it to the trial."""

    batch: int = -1
    epoch: int = 0
    epoch_length: int = 0
    stop_requested: bool = False


class TrialContext(ConfiguredTrial):
    """Base class of the contexts of all kinds of trial."""

    def __init__(
        self,
        core_context: core.Context,
        *,
        hparams: Mapping[str, Any],
        exp_conf: Mapping[str, Any],
        trial_seed: int = 0,
        device: torch.device | None = None,
    ) -> None:
        super().__init__(core_context, hparams=hparams, exp_conf=exp_conf, trial_seed=trial_seed)
        self.device = device or torch.device("cpu")
        self.models: list[nn.Module] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        self.lr_schedulers: list[LRScheduler] = []
        self.scalers: list[Any] = []
        self.experimental = ExperimentalContext(self)
        self._aggregation = 1
        self._averaging: GradientSync = NoSync()
        self._reducers: list[tuple[MetricReducer, str | None, bool, bool]] = []
        self._position = TrainingPosition()

    def wrap_reducer(
        self,
        reducer: MetricReducer | Callable[[list[Any]], Any],
        name: str | None = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> MetricReducer:
        """Adds a metric that is not an average of batches and returns its reducer.

        Args:
            reducer: a reducer, or a function that receives a list of all values.
            name: name of the metric; None if the reducer returns a dictionary of metrics.
            for_training: compute the metric in training.
            for_validation: compute the metric in validations.
        """
        made = reducer if isinstance(reducer, MetricReducer) else SimpleMetricReducer(reducer)
        self._reducers.append((made, name, for_training, for_validation))
        return made

    def to_device(self, data: object) -> Any:  # noqa: ANN401  # only the trial's author knows this type
        """Moves tensors and arrays to this slot's device and returns the result.

        Args:
            data: a tensor or array, or nested lists, tuples and dictionaries of them; other values stay unchanged.
        """
        return move(data, self.device)

    def current_train_batch(self) -> int:
        """Returns the number of the current or last training batch over all epochs; -1 before the first."""
        return self._position.batch

    def current_train_epoch(self) -> int:
        """Returns the number of the current epoch, from 0."""
        return self._position.epoch

    def is_epoch_start(self) -> bool:
        """Returns True if the current batch is the first of its epoch; False before the first batch."""
        return self._position.batch >= 0 and self._position.batch % self._position.epoch_length == 0

    def is_epoch_end(self) -> bool:
        """Returns True if the current batch is the last of its epoch; False before the first batch."""
        return self._position.batch >= 0 and (self._position.batch + 1) % self._position.epoch_length == 0

    def set_stop_requested(self, stop_requested: bool) -> None:
        """Requests the end of training after this batch, with a last validation and checkpoint.

        One of several slots is enough. All of them end after the same batch, at most about 0.1 s later.
        In ``__init__`` it requests the end after the first batch of this attempt.

        Args:
            stop_requested: False withdraws the request.
        """
        self._position.stop_requested = bool(stop_requested)

    def get_stop_requested(self) -> bool:
        """Returns True if the end of training was requested."""
        return self._position.stop_requested

    def set_profiler(self, *args: object, **kwargs: object) -> None:
        """Does nothing but log a warning; all arguments are ignored. Use ``torch.profiler`` in the trial."""
        logger.warning("set_profiler has no effect; use torch.profiler in the trial")

    def get_tensorboard_path(self) -> Path:
        """Returns the folder for event files."""
        return self._core.train.get_tensorboard_path()

    def get_tensorboard_writer(self) -> Any:  # noqa: ANN401  # only the trial's author knows this type
        """Returns a ``SummaryWriter`` for that folder. The environment must have tensorboard.

        Raises:
            ImportError: tensorboard is not installed.
        """
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(log_dir=str(self.get_tensorboard_path()))
