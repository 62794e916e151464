"""Context of every kind of trial: hyperparameters, configuration, rank, reducers."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from determined import core
from determined.pytorch._device import move
from determined.pytorch._experimental import ExperimentalContext
from determined.pytorch._gradient_sync import GradientSync, NoSync
from determined.pytorch._lr_scheduler import LRScheduler
from determined.pytorch._reducer import MetricReducer, SimpleMetricReducer

logger = logging.getLogger(__name__)


class TrialContext:
    """The part that the contexts of all kinds of trial have in common."""

    def __init__(
        self,
        core_context: core.Context,
        *,
        hparams: Mapping[str, Any],
        exp_conf: Mapping[str, Any],
        trial_seed: int = 0,
        device: torch.device | None = None,
    ) -> None:
        self._core = core_context
        self.distributed = core_context.distributed
        self.device = device or torch.device("cpu")
        self.models: list[nn.Module] = []
        self.optimizers: list[torch.optim.Optimizer] = []
        self.lr_schedulers: list[LRScheduler] = []
        self.scalers: list[Any] = []
        self.experimental = ExperimentalContext(self)
        self._hparams = dict(hparams)
        self._config = dict(exp_conf)
        self._trial_seed = trial_seed
        self._aggregation = 1
        self._averaging: GradientSync = NoSync()
        self._reducers: list[tuple[MetricReducer, str | None, bool, bool]] = []
        self._batch = -1
        self._epoch = 0
        self._epoch_length = 0
        self._stop_requested = False

    def wrap_reducer(
        self,
        reducer: MetricReducer | Callable[[list[Any]], Any],
        name: str | None = None,
        for_training: bool = True,
        for_validation: bool = True,
    ) -> MetricReducer:
        """Adds a metric that is not an average of batches; a plain function gets the list of all values."""
        made = reducer if isinstance(reducer, MetricReducer) else SimpleMetricReducer(reducer)
        self._reducers.append((made, name, for_training, for_validation))
        return made

    def to_device(self, data: Any) -> Any:
        """Tensors and arrays inside lists, tuples and dictionaries, on this slot's device."""
        return move(data, self.device)

    def get_hparams(self) -> dict[str, Any]:
        """All hyperparameters."""
        return self._hparams

    def get_hparam(self, name: str) -> Any:
        """One hyperparameter. Raises ValueError where the configuration has none of that name."""
        if name not in self._hparams:
            known = ", ".join(sorted(self._hparams)) or "none"
            raise ValueError(f"there is no hyperparameter {name!r}; there are: {known}")
        return self._hparams[name]

    def get_experiment_config(self) -> dict[str, Any]:
        """The experiment configuration."""
        return self._config

    def get_data_config(self) -> dict[str, Any]:
        """Its ``data`` section."""
        return dict(self._config.get("data") or {})

    def get_experiment_id(self) -> int:
        """0 off the cluster."""
        return self._core.info.trial.experiment_id if self._core.info else 0

    def get_trial_id(self) -> int:
        """0 off the cluster."""
        return self._core.info.trial.trial_id if self._core.info else 0

    def get_trial_seed(self) -> int:
        """The seed from which the trial's random streams start."""
        return self._trial_seed

    def get_core_context(self) -> core.Context:
        """The Core API under this trial."""
        return self._core

    def current_train_batch(self) -> int:
        """The number of the batch in training, or of the last one, over all epochs; -1 before the first."""
        return self._batch

    def current_train_epoch(self) -> int:
        """The number of the epoch in training."""
        return self._epoch

    def is_epoch_start(self) -> bool:
        """Whether this batch is the first of its epoch."""
        return self._batch % self._epoch_length == 0

    def is_epoch_end(self) -> bool:
        """Whether this batch is the last of its epoch."""
        return (self._batch + 1) % self._epoch_length == 0

    def set_stop_requested(self, stop_requested: bool) -> None:
        """Asks for the end of training after this batch, with a last validation and checkpoint.

        In ``__init__`` it asks for the end after the first batch of this attempt.
        """
        self._stop_requested = bool(stop_requested)

    def get_stop_requested(self) -> bool:
        """Whether the end was asked for."""
        return self._stop_requested

    def set_profiler(self, *args: Any, **kwargs: Any) -> None:
        """Accepted and without effect."""
        logger.warning("set_profiler has no effect; use torch.profiler in the trial")

    def get_tensorboard_path(self) -> Path:
        """Where event files go."""
        return self._core.train.get_tensorboard_path()

    def get_tensorboard_writer(self) -> Any:
        """A writer there; needs tensorboard in the environment."""
        from torch.utils.tensorboard import SummaryWriter

        return SummaryWriter(log_dir=str(self.get_tensorboard_path()))
