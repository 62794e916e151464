"""The backends ``torch_train`` and ``torch_inference``: plain torch, with its DDP for several replicas."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from determined_workflows.rlhf.task import schedules
from determined_workflows.rlhf.task.model import FinetuneSpec, Model, ModelBackend, register_backend

# torch renamed the option; each replica keeps its buffers, as no call may wait for another replica but backward
_HAS_FORWARD_SYNC = "forward_sync_buffers" in inspect.signature(DistributedDataParallel).parameters
_WITHOUT_BUFFERS: dict[str, Any] = {"forward_sync_buffers" if _HAS_FORWARD_SYNC else "broadcast_buffers": False}
_OPTIMIZERS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": torch.optim.AdamW,
    "sgd": torch.optim.SGD,
}


class TorchEngine(torch.nn.Module):
    """A module with its optimizer and schedule, used like DeepSpeed's engine: call it, then ``backward`` and ``step``.

    Attributes:
        module: the module itself, for calls that need no gradients of all replicas, such as ``generate``.
        optimizer: the optimizer.
        lr_scheduler: the schedule of the learning rate.

    >>> loss = engine(input_ids=ids).logits.mean()  # doctest: +SKIP
    >>> engine.backward(loss)  # doctest: +SKIP
    >>> engine.step()  # doctest: +SKIP
    """

    def __init__(
        self,
        module: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        lr_scheduler: torch.optim.lr_scheduler.LRScheduler,
        *,
        max_grad_norm: float | None = None,
    ) -> None:
        super().__init__()
        self.module = module
        self.optimizer = optimizer
        self.lr_scheduler = lr_scheduler
        self._max_grad_norm = max_grad_norm
        # not a submodule: the state must have the module's own names
        self._replicated: tuple[torch.nn.Module, ...] = ()
        if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
            self._replicated = (DistributedDataParallel(module, **_WITHOUT_BUFFERS),)

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # as the module's
        """Calls the module. With gradients and several replicas, ``backward`` averages the gradients of all of them."""
        with_gradients = self._replicated and torch.is_grad_enabled() and self.training
        return (self._replicated[0] if with_gradients else self.module)(*args, **kwargs)

    def backward(self, loss: torch.Tensor) -> None:
        """Adds the gradients of a loss to those of earlier losses since the last step."""
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types here

    def step(self) -> None:
        """Updates the weights and the learning rate and clears the gradients."""
        if self._max_grad_norm:
            torch.nn.utils.clip_grad_norm_(self.module.parameters(), self._max_grad_norm)
        self.optimizer.step()
        self.lr_scheduler.step()
        self.optimizer.zero_grad(set_to_none=True)

    def training_state(self) -> dict[str, Any]:
        """Returns the state of module, optimizer and schedule."""
        return {
            "module": self.module.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "lr_scheduler": self.lr_scheduler.state_dict(),
        }

    def load_training_state(self, state: Mapping[str, Any]) -> None:
        """Continues from the state that :meth:`training_state` returned."""
        self.module.load_state_dict(state["module"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.lr_scheduler.load_state_dict(state["lr_scheduler"])


class TorchTrainBackend(ModelBackend):
    """``torch_train``: AdamW or SGD with a schedule; the module of the model becomes a :class:`TorchEngine`.

    Args:
        optimizer_name: ``adam`` (torch's AdamW) or ``sgd``.
        optimizer_config: its arguments: ``lr``, ``betas``, ``eps``, ``weight_decay``, …
        lr_scheduler_type: ``cosine``, ``linear`` or ``constant``.
        warmup_steps_proportion: part of all train steps in which the learning rate rises from 0, from 0 to 1.
        min_lr_ratio: last learning rate, as a part of the highest one.
        max_grad_norm: norm to which gradients are clipped; None or 0 for no clipping, as ``ds_train`` has it.
        gradient_checkpointing: recompute activations in the backward pass, for models of transformers.

    Raises:
        ValueError: an argument is unknown or out of range.
    """

    def __init__(
        self,
        optimizer_name: str = "adam",
        optimizer_config: Mapping[str, Any] | None = None,
        lr_scheduler_type: str = "cosine",
        warmup_steps_proportion: float = 0.0,
        min_lr_ratio: float = 0.0,
        max_grad_norm: float | None = 1.0,
        gradient_checkpointing: bool = False,
    ) -> None:
        if optimizer_name not in _OPTIMIZERS:
            raise ValueError(f"torch_train: optimizer_name is one of {', '.join(_OPTIMIZERS)}, not {optimizer_name!r}")
        schedules.check(lr_scheduler_type, warmup_steps_proportion, min_lr_ratio)
        self._optimizer = _OPTIMIZERS[optimizer_name]
        self._config = {"lr": 1e-5, **(optimizer_config or {})}
        self._schedule = (lr_scheduler_type, warmup_steps_proportion, min_lr_ratio)
        self._max_grad_norm = max_grad_norm
        self._gradient_checkpointing = gradient_checkpointing

    def _initialize(self, model: Model, spec: FinetuneSpec) -> Model:
        parameters = [parameter for parameter in model.module.parameters() if parameter.requires_grad]
        if not parameters:
            raise ValueError(f"model {model.name} has no parameter that requires gradients, and torch_train trains it")
        if self._gradient_checkpointing:
            model.module.gradient_checkpointing_enable()
        optimizer = self._optimizer(parameters, **_tuples(self._config))
        factor = schedules.factor(*self._schedule, total_steps=spec.total_train_steps)
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
        model.module = TorchEngine(model.module, optimizer, scheduler, max_grad_norm=self._max_grad_norm)
        return model


class TorchInferenceBackend(ModelBackend):
    """``torch_inference``: the module as it is, in evaluation mode and without gradients."""

    def _initialize(self, model: Model, spec: FinetuneSpec) -> Model:
        model.module.eval().requires_grad_(requires_grad=False)
        return model


def _tuples(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments with lists as tuples: a configuration from YAML has lists, and betas are compared."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in config.items()}


register_backend("torch_train", TorchTrainBackend)
register_backend("torch_inference", TorchInferenceBackend)
