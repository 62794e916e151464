"""``PyTorchTrialContext``: wraps models and optimizers and provides hyperparameters and ranks."""

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
    """The context of a :class:`PyTorchTrial`: wraps its models, optimizers and schedulers.

    :func:`determined.pytorch.init` makes it.
    """

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
            raise ValueError("aggregation_frequency must be at least 1")
        super().__init__(core_context, hparams=hparams, exp_conf=exp_conf, trial_seed=trial_seed, device=device)
        self._aggregation = aggregation_frequency
        self._average_gradients = average_aggregated_gradients
        self._amp_scaler: Any = None
        self._amp_stepped = False
        if averaging is not None:
            self._averaging = averaging
        elif self.distributed.size > 1:
            self._averaging = DDPSync(self.device)

    def wrap_model(self, model: nn.Module) -> nn.Module:
        """Moves the model to this slot's device and returns it. With several slots, gradients are averaged over them.

        Args:
            model: the model; use the returned object instead of it.
        """
        model = self._averaging.model(model.to(self.device))
        self.models.append(model)
        return model

    def wrap_optimizer(self, optimizer: Optimizer, backward_passes_per_step: int = 1) -> Optimizer:
        """Makes the optimizer's state part of checkpoints and returns the optimizer to use.

        Args:
            optimizer: the optimizer; under horovod the returned object is another one.
            backward_passes_per_step: number of ``backward`` calls per batch.

        Raises:
            ValueError: ``backward_passes_per_step`` is below 1.
        """
        if backward_passes_per_step < 1:
            raise ValueError("backward_passes_per_step must be at least 1")
        passes = backward_passes_per_step * self._aggregation
        wrapped: Optimizer = self._averaging.optimizer(optimizer, passes, number=len(self.optimizers))
        self.optimizers.append(wrapped)
        return wrapped

    def wrap_lr_scheduler(
        self, lr_scheduler: object, step_mode: LRScheduler.StepMode, frequency: int = 1
    ) -> LRScheduler:
        """Makes the scheduler's state part of checkpoints; the trainer steps the scheduler.

        Args:
            lr_scheduler: a scheduler of torch, or an object with the same methods.
            step_mode: selects when the trainer calls ``step``.
            frequency: number of batches, epochs or optimizer steps per call of ``step``.

        Raises:
            ValueError: ``frequency`` is below 1.
        """
        wrapped = LRScheduler(lr_scheduler, step_mode, frequency)
        self.lr_schedulers.append(wrapped)
        return wrapped

    def wrap_scaler(self, scaler: object) -> Any:  # noqa: ANN401  # scalers and models of several torch versions
        """Makes a gradient scaler's state part of checkpoints and returns the scaler.

        Args:
            scaler: the scaler. Pass it to :meth:`step_optimizer` too, and call its ``update()`` after the steps of a
                batch.

        Raises:
            RuntimeError: ``context.experimental.use_amp()`` has made a scaler.
        """
        if self._amp_scaler is not None:
            raise RuntimeError("context.experimental.use_amp() already has a gradient scaler: use only one of the two")
        self.scalers.append(scaler)
        return scaler

    def configure_apex_amp(
        self, models: object, optimizers: object = None, enabled: bool = True, opt_level: str = "O1", **_: object
    ) -> Any:  # noqa: ANN401  # scalers and models of several torch versions
        """Raises NotImplementedError because NVIDIA no longer maintains ``apex.amp``; use torch's mixed precision.

        With mixed precision switched off it returns its arguments, as apex does.

        Args:
            models: one model or a list of models.
            optimizers: one optimizer or a list of optimizers.
            enabled: False switches mixed precision off.
            opt_level: ``O0`` switches mixed precision off.

        Raises:
            NotImplementedError: mixed precision is not switched off.
        """
        if enabled and opt_level != "O0":
            raise NotImplementedError(
                "configure_apex_amp: apex.amp is no longer maintained and is not supported. Use "
                "context.experimental.use_amp(), or torch.autocast with context.wrap_scaler(torch.amp.GradScaler()) "
                "and context.step_optimizer(optimizer, scaler=scaler)"
            )
        return models if optimizers is None else (models, optimizers)

    def backward(
        self,
        loss: torch.Tensor,
        gradient: torch.Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
    ) -> None:
        """Computes gradients like ``loss.backward``; after ``context.experimental.use_amp()`` it scales the loss.

        Args:
            loss: the loss, usually a tensor with one element.
            gradient: gradient of the loss, of the loss's shape; needed if the loss has more than one element.
            retain_graph: keep the graph for another backward pass.
            create_graph: build a graph of the gradients.
        """
        if self._amp_scaler is None:
            torch.autograd.backward(loss, gradient, retain_graph=retain_graph, create_graph=create_graph)
            return
        with torch.autocast(self.device.type, enabled=False):  # backward uses the data types of the forward pass
            torch.autograd.backward(
                self._amp_scaler.scale(loss), gradient, retain_graph=retain_graph, create_graph=create_graph
            )

    def step_optimizer(
        self,
        optimizer: torch.optim.Optimizer,
        clip_grads: ClipGrads | None = None,
        auto_zero_grads: bool = True,
        scaler: Any = None,  # noqa: ANN401  # scalers and models of several torch versions
    ) -> None:
        """Steps the optimizer in every ``aggregation_frequency``-th batch; in the other batches gradients accumulate.

        Args:
            optimizer: an optimizer that ``wrap_optimizer`` returned.
            clip_grads: receives the optimizer's parameters and clips their gradients, which are unscaled by then.
            auto_zero_grads: set the gradients to zero after the step.
            scaler: the gradient scaler, if the loss was scaled. The trial may have called
                ``scaler.unscale_(optimizer)`` before, and calls ``scaler.update()`` afterwards.

        Raises:
            RuntimeError: ``context.experimental.use_amp()`` has made another scaler.
        """
        if (self._position.batch + 1) % self._aggregation:
            return
        if self._amp_scaler is not None:
            if scaler is not None and scaler is not self._amp_scaler:
                raise RuntimeError("context.experimental.use_amp() already has a gradient scaler: remove scaler=")
            scaler = self._amp_scaler
            self._amp_stepped = True
        self._averaging.before_step(optimizer)
        if self._aggregation > 1 and self._average_gradients:
            gradients = [p.grad for p in parameters(optimizer) if p.grad is not None]
            if gradients:
                torch._foreach_div_(gradients, self._aggregation)  # pyright: ignore[reportPrivateImportUsage]  # one call for all
        if clip_grads is not None:
            if scaler is not None:
                _unscale(scaler, optimizer)
            clip_grads(list(parameters(optimizer)))
        with self._averaging.stepping(optimizer):
            if scaler is not None:
                scaler.step(optimizer)
            else:
                optimizer.step()
        if auto_zero_grads:
            optimizer.zero_grad()

    def _update_amp_scaler(self) -> None:
        """Updates the scaler of ``use_amp`` once for all optimizers that stepped in this batch."""
        if self._amp_stepped:
            self._amp_stepped = False
            self._amp_scaler.update()

    def autocast_forward_pass(self, to_wrap: nn.Module) -> nn.Module:
        """Makes the model's forward pass run in mixed precision and returns the model.

        Args:
            to_wrap: the model; its ``forward`` is replaced.
        """
        inner = to_wrap.forward

        def forward(*args: object, **kwargs: object) -> Any:  # noqa: ANN401  # scalers and models of several torch versions
            with torch.autocast(self.device.type):
                return inner(*args, **kwargs)

        to_wrap.forward = forward
        return to_wrap

    def get_global_batch_size(self) -> int:
        """Returns the hyperparameter ``global_batch_size``: records per step over all slots."""
        return int(self.get_hparam("global_batch_size"))

    def get_per_slot_batch_size(self) -> int:
        """Returns the number of records per step of one slot.

        Raises:
            InvalidHP: ``global_batch_size`` is smaller than the number of slots.
        """
        size = self.get_global_batch_size() // self.distributed.size
        if size < 1:
            raise InvalidHP(f"global_batch_size is smaller than the {self.distributed.size} slots")
        return size


def _unscale(scaler: Any, optimizer: torch.optim.Optimizer) -> None:  # noqa: ANN401  # scalers and models of several torch versions
    """Unscales the optimizer's gradients, unless the trial has done so in this batch."""
    try:
        scaler.unscale_(optimizer)
    except RuntimeError as error:
        # the scaler has no public query; after a step without update() its text differs
        if "has already been called" not in str(error):
            raise


def parameters(optimizer: torch.optim.Optimizer) -> Iterable[torch.Tensor]:
    """Returns all parameters of an optimizer in order."""
    return (parameter for group in optimizer.param_groups for parameter in group["params"])
