"""What a trial gets: its models and optimizers wrapped, its hyperparameters, its place among the slots."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import nn

from determined import core
from determined.errors import InvalidHP
from determined.pytorch._gradient_sync import DDPSync, GradientSync
from determined.pytorch._lr_scheduler import LRScheduler
from determined.pytorch._trial_context import TrialContext

Optimizer = TypeVar("Optimizer", bound=torch.optim.Optimizer)
ClipGrads = Callable[[Iterable[torch.Tensor]], Any]


class PyTorchTrialContext(TrialContext):
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
        averaging: GradientSync | None = None,
    ) -> None:
        if aggregation_frequency < 1:
            raise ValueError("aggregation_frequency is at least 1")
        super().__init__(core_context, hparams=hparams, exp_conf=exp_conf, trial_seed=trial_seed, device=device)
        self._aggregation = aggregation_frequency
        self._average_gradients = average_aggregated_gradients
        if averaging is not None:
            self._averaging = averaging
        elif self.distributed.size > 1:
            self._averaging = DDPSync(self.device)

    def wrap_model(self, model: nn.Module) -> nn.Module:
        """Moves the model to this slot's device; with several slots its gradients are averaged over them."""
        model = self._averaging.model(model.to(self.device))
        self.models.append(model)
        return model

    def wrap_optimizer(self, optimizer: Optimizer, backward_passes_per_step: int = 1) -> Optimizer:
        """Makes the optimizer's state part of checkpoints.

        ``backward_passes_per_step`` says how often ``backward`` is called in a batch; any number works. Use what is
        returned: under horovod it is another object.
        """
        if backward_passes_per_step < 1:
            raise ValueError("backward_passes_per_step is at least 1")
        passes = backward_passes_per_step * self._aggregation
        wrapped: Optimizer = self._averaging.optimizer(optimizer, passes, number=len(self.optimizers))
        self.optimizers.append(wrapped)
        return wrapped

    def wrap_lr_scheduler(self, lr_scheduler: Any, step_mode: LRScheduler.StepMode, frequency: int = 1) -> LRScheduler:
        """The trainer steps it as ``step_mode`` says; its state is part of checkpoints."""
        wrapped = LRScheduler(lr_scheduler, step_mode, frequency)
        self.lr_schedulers.append(wrapped)
        return wrapped

    def wrap_scaler(self, scaler: Any) -> Any:
        """Makes a gradient scaler's state part of checkpoints."""
        self.scalers.append(scaler)
        return scaler

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
        self._averaging.before_step(optimizer)
        if self._aggregation > 1 and self._average_gradients:
            gradients = [p.grad for p in parameters(optimizer) if p.grad is not None]
            if gradients:
                torch._foreach_div_(gradients, self._aggregation)  # pyright: ignore[reportPrivateImportUsage]  # one call for all
        if clip_grads is not None:
            if scaler is not None:
                scaler.unscale_(optimizer)
            clip_grads(list(parameters(optimizer)))
        with self._averaging.stepping(optimizer):
            if scaler is not None:
                scaler.step(optimizer)
            else:
                optimizer.step()
        if auto_zero_grads:
            optimizer.zero_grad()

    def autocast_forward_pass(self, to_wrap: nn.Module) -> nn.Module:
        """Runs the model's forward pass in mixed precision."""
        inner = to_wrap.forward

        def forward(*args: Any, **kwargs: Any) -> Any:
            with torch.autocast(self.device.type):
                return inner(*args, **kwargs)

        to_wrap.forward = forward
        return to_wrap

    def get_global_batch_size(self) -> int:
        """The hyperparameter ``global_batch_size``: records in a step over all slots."""
        return int(self.get_hparam("global_batch_size"))

    def get_per_slot_batch_size(self) -> int:
        """Records in a step of one slot."""
        size = self.get_global_batch_size() // self.distributed.size
        if size < 1:
            raise InvalidHP(f"global_batch_size is smaller than the {self.distributed.size} slots")
        return size


def parameters(optimizer: torch.optim.Optimizer) -> Iterable[torch.Tensor]:
    """All parameters of an optimizer in their order."""
    return (parameter for group in optimizer.param_groups for parameter in group["params"])
