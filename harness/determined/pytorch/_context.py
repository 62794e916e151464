"""What a trial gets: its models and optimizers wrapped, its hyperparameters, its place among the slots."""

import contextlib
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from determined import core
from determined.errors import InvalidHP
from determined.pytorch._device import move
from determined.pytorch._experimental import ExperimentalContext
from determined.pytorch._lr_scheduler import LRScheduler
from determined.pytorch._reducer import MetricReducer, SimpleMetricReducer

logger = logging.getLogger(__name__)

Optimizer = TypeVar("Optimizer", bound=torch.optim.Optimizer)
ClipGrads = Callable[[Iterable[torch.Tensor]], Any]


class PyTorchTrialContext:
    """Made by :func:`determined.pytorch.init`; a trial keeps it and wraps its parts with it."""

    def __init__(
        self,
        core_context: core.Context,
        *,
        hparams: Mapping[str, Any],
        exp_conf: Mapping[str, Any],
        trial_seed: int = 0,
        device: torch.device | None = None,
        aggregation_frequency: int = 1,
        average_aggregated_gradients: bool = True,
    ) -> None:
        if aggregation_frequency < 1:
            raise ValueError("aggregation_frequency is at least 1")
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
        self._aggregation = aggregation_frequency
        self._average_gradients = average_aggregated_gradients
        self._reducers: list[tuple[MetricReducer, str | None, bool, bool]] = []
        self._batch = -1
        self._epoch = 0
        self._epoch_length = 0
        self._stop_requested = False

    def wrap_model(self, model: nn.Module) -> nn.Module:
        """Moves the model to this slot's device; with several slots its gradients are averaged over them."""
        model = model.to(self.device)
        if self.distributed.size > 1 and any(p.requires_grad for p in model.parameters()):
            ids = [self.device.index] if self.device.type == "cuda" else None
            model = nn.parallel.DistributedDataParallel(model, device_ids=ids)
        self.models.append(model)
        return model

    def wrap_optimizer(self, optimizer: Optimizer, backward_passes_per_step: int = 1) -> Optimizer:
        """Makes the optimizer's state part of checkpoints.

        ``backward_passes_per_step`` says how often ``backward`` is called before a step; any number works.
        """
        if backward_passes_per_step < 1:
            raise ValueError("backward_passes_per_step is at least 1")
        self.optimizers.append(optimizer)
        return optimizer

    def wrap_lr_scheduler(self, lr_scheduler: Any, step_mode: LRScheduler.StepMode, frequency: int = 1) -> LRScheduler:
        """The trainer steps it as ``step_mode`` says; its state is part of checkpoints."""
        wrapped = LRScheduler(lr_scheduler, step_mode, frequency)
        self.lr_schedulers.append(wrapped)
        return wrapped

    def wrap_scaler(self, scaler: Any) -> Any:
        """Makes a gradient scaler's state part of checkpoints."""
        self.scalers.append(scaler)
        return scaler

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

    def backward(
        self,
        loss: torch.Tensor,
        gradient: torch.Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
    ) -> None:
        """Like ``loss.backward``."""
        torch.autograd.backward(loss, gradient, retain_graph=retain_graph, create_graph=create_graph)

    def step_optimizer(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: ClipGrads | None = None,
        auto_zero_grads: bool = True,
        scaler: Any = None,
    ) -> None:
        """One step, in every ``aggregation_frequency``-th batch; in the others gradients go on adding up."""
        if (self._batch + 1) % self._aggregation:
            return
        if self._aggregation > 1 and self._average_gradients:
            gradients = [p.grad for p in parameters(optimizer) if p.grad is not None]
            if gradients:
                torch._foreach_div_(gradients, self._aggregation)  # pyright: ignore[reportPrivateImportUsage]  # one call for all
        if clip_grads is not None:
            if scaler is not None:
                scaler.unscale_(optimizer)
            clip_grads(list(parameters(optimizer)))
        if scaler is not None:
            scaler.step(optimizer)
        else:
            optimizer.step()
        if auto_zero_grads:
            optimizer.zero_grad()

    def to_device(self, data: Any) -> Any:
        """Tensors and arrays inside lists, tuples and dictionaries, on this slot's device."""
        return move(data, self.device)

    def autocast_forward_pass(self, to_wrap: nn.Module) -> nn.Module:
        """Runs the model's forward pass in mixed precision."""
        inner = to_wrap.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            with torch.autocast(self.device.type):
                return inner(*args, **kwargs)

        to_wrap.forward = forward
        return to_wrap

    def get_hparams(self) -> dict[str, Any]:
        """All hyperparameters."""
        return self._hparams

    def get_hparam(self, name: str) -> Any:
        """One hyperparameter. Raises ValueError where the configuration has none of that name."""
        if name not in self._hparams:
            known = ", ".join(sorted(self._hparams)) or "none"
            raise ValueError(f"there is no hyperparameter {name!r}; there are: {known}")
        return self._hparams[name]

    def get_global_batch_size(self) -> int:
        """The hyperparameter ``global_batch_size``: records in a step over all slots."""
        return int(self.get_hparam("global_batch_size"))

    def get_per_slot_batch_size(self) -> int:
        """Records in a step of one slot."""
        size = self.get_global_batch_size() // self.distributed.size
        if size < 1:
            raise InvalidHP(f"global_batch_size is smaller than the {self.distributed.size} slots")
        return size

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
        """Asks for the end of training after this batch, with a last validation and checkpoint."""
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

    @contextlib.contextmanager
    def _syncing(self, wanted: bool) -> Any:
        """Inside, gradients of several slots are averaged only where a step follows."""
        wrapped = [m for m in self.models if isinstance(m, nn.parallel.DistributedDataParallel)]
        with contextlib.ExitStack() as stack:
            for model in wrapped if not wanted else ():
                stack.enter_context(model.no_sync())
            yield


def parameters(optimizer: torch.optim.Optimizer) -> Iterable[torch.Tensor]:
    """All parameters of an optimizer in their order."""
    return (parameter for group in optimizer.param_groups for parameter in group["params"])
