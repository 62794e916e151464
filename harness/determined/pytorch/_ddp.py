"""A subclass of torch's DistributedDataParallel that exposes the attributes of the wrapped model."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

_PREFIX = "module."
_groups: list[Any] = []
"""Process groups of models, kept until the process ends. The end of a model may end its group, and torch then waits for
the group's thread while it holds the interpreter's lock, for which that thread may wait to release a last gradient."""


class TransparentDDP(nn.parallel.DistributedDataParallel):
    """Passes attributes and methods through to the wrapped model, so that code for one slot runs with several.

    Names of parameters and buffers, and the keys of ``state_dict()``, are the model's own, without ``module.``;
    ``load_state_dict`` takes both. An attribute that only the model has is set at the model.

    Not passed through: ``isinstance(model, MyModel)`` is False, ``model[0]`` and ``len(model)`` are not there, and
    ``children()`` and ``modules()`` begin with the wrapper. ``model.module`` is the model itself. Hooks that are
    registered at the wrapper run when the wrapper is called and get it as their module. A name that DDP has itself
    (``device``, ``logger``, ``reducer``) stays DDP's. A method of the model that is
    called directly, instead of ``model(...)``, computes without DDP: gradients of such a pass are not averaged.
    """

    def __init__(self, module: nn.Module, **options: Any) -> None:  # noqa: ANN401  # arguments and results of the user's model
        super().__init__(module, **options)
        if all(group is not self.process_group for group in _groups):
            _groups.append(self.process_group)
        # set last: attributes that DDP sets during construction are its own, even if the model has the same names
        object.__setattr__(self, "_passes_through", True)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # arguments and results of the user's model
        try:
            return super().__getattr__(name)
        except AttributeError:
            if not self.__dict__.get("_passes_through"):
                raise
            return getattr(self.module, name)

    def __setattr__(self, name: str, value: Any) -> None:  # noqa: ANN401  # arguments and results of the user's model
        if self.__dict__.get("_passes_through") and not self._has_own(name) and hasattr(self.module, name):
            setattr(self.module, name, value)
        else:
            super().__setattr__(name, value)

    def _has_own(self, name: str) -> bool:
        own = self.__dict__
        places = (own, own.get("_parameters", {}), own.get("_buffers", {}), own.get("_modules", {}))
        return any(name in place for place in places) or hasattr(type(self), name)

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # arguments and results of the user's model
        """Returns the state of the wrapped model."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401  # arguments and results of the user's model
        """Loads the model's state, or one with ``module.`` before each key."""
        if state_dict and all(key.startswith(_PREFIX) for key in state_dict) and not self._has_child_module():
            state_dict = {key.removeprefix(_PREFIX): value for key, value in state_dict.items()}
        return self.module.load_state_dict(state_dict, *args, **kwargs)

    def named_parameters(self, *args: object, **kwargs: object) -> Iterator[tuple[str, nn.Parameter]]:
        """Yields the names and parameters of the wrapped model."""
        yield from self.module.named_parameters(*args, **kwargs)

    def named_buffers(self, *args: object, **kwargs: object) -> Iterator[tuple[str, torch.Tensor]]:
        """Yields the names and buffers of the wrapped model."""
        yield from self.module.named_buffers(*args, **kwargs)

    def _has_child_module(self) -> bool:
        return any(name == "module" for name, _ in self.module.named_children())
