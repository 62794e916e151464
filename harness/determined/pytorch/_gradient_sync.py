"""Synchronizes gradients between slots: not at all, by torch's DDP, or by horovod.

Buffers follow the chief's: before each forward pass in training, and before a validation. Every slot therefore
continues with the buffers that the chief saves in a checkpoint.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

import torch
from torch import nn

from determined.pytorch._ddp import TransparentDDP

Broadcast = Callable[[torch.Tensor, str], Any]
"""Fills a tensor with the chief's values; the text identifies the tensor in one exchange."""


# Torch 2.13 renamed the argument.
_HAS_FORWARD_SYNC = "forward_sync_buffers" in inspect.signature(nn.parallel.DistributedDataParallel).parameters


class GradientSync(Protocol):
    """A way to synchronize gradients. The trial context calls it wherever slots exchange data."""

    def model(self, model: nn.Module) -> nn.Module:
        """Returns the model to use; all slots then have the chief's weights."""
        ...

    def optimizer(self, optimizer: object, passes: int, *, number: int) -> Any:  # noqa: ANN401  # horovod has no types
        """Returns the optimizer to use, which expects ``passes`` backward passes per step."""
        ...

    def pausing(self, models: Iterable[nn.Module]) -> contextlib.AbstractContextManager[Any]:
        """Suspends the exchange inside the block: gradients accumulate on each slot, and no step follows."""
        ...

    def before_step(self, optimizer: object) -> None:
        """Completes the exchange, so that gradients are averages over all slots."""
        ...

    def stepping(self, optimizer: object) -> contextlib.AbstractContextManager[Any]:
        """Wraps the optimizer's own step."""
        ...

    def share_buffers(self, models: Iterable[nn.Module]) -> None:
        """Copies the chief's buffers to all slots."""
        ...


class NoSync:
    """No synchronization: a single slot, or a framework that synchronizes by itself."""

    def model(self, model: nn.Module) -> nn.Module:
        return model

    def optimizer(self, optimizer: object, passes: int, *, number: int) -> Any:  # noqa: ANN401  # horovod has no types
        return optimizer

    def pausing(self, models: Iterable[nn.Module]) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def before_step(self, optimizer: object) -> None:
        pass

    def stepping(self, optimizer: object) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()

    def share_buffers(self, models: Iterable[nn.Module]) -> None:
        pass


class DDPSync(NoSync):
    """Synchronization by torch's DistributedDataParallel; the process group must exist."""

    def __init__(self, device: torch.device) -> None:
        self._ids = [device.index] if device.type == "cuda" else None

    def model(self, model: nn.Module) -> nn.Module:
        if not any(p.requires_grad for p in model.parameters()):
            return model
        # DDP's own exchange of buffers skips the batch after one without a step, which would change a resumed trial
        if _HAS_FORWARD_SYNC:
            wrapped = TransparentDDP(model, device_ids=self._ids, forward_sync_buffers=False)
        else:
            wrapped = TransparentDDP(model, device_ids=self._ids, broadcast_buffers=False)
        follow(wrapped, _by_torch)
        return wrapped

    @contextlib.contextmanager
    def pausing(self, models: Iterable[nn.Module]) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for model in models:
                if isinstance(model, nn.parallel.DistributedDataParallel):
                    stack.enter_context(model.no_sync())
            yield

    def share_buffers(self, models: Iterable[nn.Module]) -> None:
        for model in models:
            share(model, _by_torch)


class HorovodSync(NoSync):
    """Synchronization by horovod's DistributedOptimizer; ``hvd`` is ``horovod.torch`` after its ``init()``."""

    def __init__(self, hvd: Any) -> None:  # noqa: ANN401  # horovod has no types
        self._hvd = hvd
        self._models = 0

    def model(self, model: nn.Module) -> nn.Module:
        self._hvd.broadcast_parameters(model.state_dict(), root_rank=0)
        follow(model, self._broadcast(f"training.{self._models}"))
        self._models += 1
        return model

    def optimizer(self, optimizer: Any, passes: int, *, number: int) -> Any:  # noqa: ANN401  # horovod has no types
        # broadcast_optimizer_state would step once to create the state, and a new optimizer has none
        state = self._hvd.broadcast_object(optimizer.state_dict(), root_rank=0, name=f"optimizer.{number}")
        names = [
            (f"optimizer.{number}.{group}.{index}", parameter)
            for group, values in enumerate(optimizer.param_groups)
            for index, parameter in enumerate(values["params"])
        ]
        wrapped = self._hvd.DistributedOptimizer(
            optimizer, named_parameters=names, backward_passes_per_step=passes, op=self._hvd.Average
        )
        wrapped.load_state_dict(state)
        return wrapped

    def before_step(self, optimizer: Any) -> None:  # noqa: ANN401  # horovod has no types
        optimizer.synchronize()

    def stepping(self, optimizer: Any) -> contextlib.AbstractContextManager[Any]:  # noqa: ANN401  # horovod has no types
        skipping: contextlib.AbstractContextManager[Any] = optimizer.skip_synchronize()
        return skipping

    def share_buffers(self, models: Iterable[nn.Module]) -> None:
        for number, model in enumerate(models):
            share(model, self._broadcast(f"validation.{number}"))

    def _broadcast(self, name: str) -> Broadcast:
        return lambda tensor, kind: self._hvd.broadcast_(tensor, 0, name=f"buffers.{name}.{kind}")


def follow(model: nn.Module, broadcast: Broadcast) -> None:
    """Copies the chief's buffers to all slots before each forward pass in training."""

    def before_forward(module: nn.Module, _: object) -> None:
        if module.training and torch.is_grad_enabled():
            share(module, broadcast)

    if next(model.buffers(), None) is not None:
        model.register_forward_pre_hook(before_forward)


def _by_torch(tensor: torch.Tensor, kind: str) -> None:
    torch.distributed.broadcast(tensor, 0)


def share(model: nn.Module, broadcast: Broadcast) -> None:
    """Copies the buffers with one exchange per data type because most buffers are small."""
    kinds: dict[tuple[torch.dtype, torch.device], list[torch.Tensor]] = {}
    for buffer in model.buffers():
        kinds.setdefault((buffer.dtype, buffer.device), []).append(buffer)
    with torch.no_grad():
        for (dtype, _), buffers in kinds.items():
            flat = torch.cat([buffer.reshape(-1) for buffer in buffers])
            broadcast(flat, str(dtype))
            parts = torch.split(flat, [buffer.numel() for buffer in buffers])
            for buffer, part in zip(buffers, parts, strict=True):
                buffer.data.copy_(part.view_as(buffer))  # autograd must not see this change
