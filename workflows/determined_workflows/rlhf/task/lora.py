"""Low-rank adapters: a linear layer keeps its weights and learns the product of two small matrices beside them."""

import math

import torch


class AdaptedLinear(torch.nn.Module):
    """A linear layer plus ``scaling * (x @ down @ up)``; ``up`` begins at zero, so that nothing changes at first.

    Args:
        base: a ``torch.nn.Linear``, or the ``Conv1D`` of transformers, whose weight is transposed.
        rank: columns of ``down``.
        scaling: factor of the product.
    """

    def __init__(self, base: torch.nn.Module, rank: int, scaling: float) -> None:
        super().__init__()
        weight = base.get_parameter("weight")
        self.is_transposed = not isinstance(base, torch.nn.Linear)
        inputs, outputs = tuple(weight.shape) if self.is_transposed else tuple(reversed(weight.shape))
        self.base = base
        self.scaling = scaling
        self.lora_down = torch.nn.Parameter(torch.empty(inputs, rank, dtype=weight.dtype, device=weight.device))
        self.lora_up = torch.nn.Parameter(torch.zeros(rank, outputs, dtype=weight.dtype, device=weight.device))
        torch.nn.init.kaiming_uniform_(self.lora_down, a=math.sqrt(5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.base(x)
        return result + self.scaling * (x @ self.lora_down @ self.lora_up)

    def merged_weight(self) -> torch.Tensor:
        """Returns the base layer's weight with the adapter added."""
        product = self.scaling * (self.lora_down @ self.lora_up).detach()
        weight = self.base.get_parameter("weight").detach()
        return weight + (product if self.is_transposed else product.T)


def add_adapters(module: torch.nn.Module, word: str, rank: int, scaling: float, *, only_adapters: bool) -> None:
    """Replaces the linear layers whose name contains ``word`` by adapted ones.

    Args:
        module: the model, which is changed.
        word: part of a name; empty for every linear layer but the one that gives the logits.
        rank: columns of the adapters' first matrix.
        scaling: factor of the adapters.
        only_adapters: freeze every other parameter.

    Raises:
        ValueError: the rank is less than 1, or no linear layer has such a name.
    """
    if rank < 1:
        raise ValueError(f"lora_dim must be at least 1, not {rank}")
    names = [name for name, layer in module.named_modules() if _is_linear(layer)]
    chosen = [name for name in names if (word in name if word else name != "lm_head")]
    if not chosen:
        raise ValueError(f"no linear layer has {word!r} in its name; there are {', '.join(names[:8]) or 'none'}")
    if only_adapters:
        module.requires_grad_(requires_grad=False)
    for name in chosen:
        parent, _, own = name.rpartition(".")
        layer = module.get_submodule(name)
        setattr(module.get_submodule(parent), own, AdaptedLinear(layer, rank, scaling))


def merged_state_dict(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Returns the state of a model as if it had no adapters: names of the base model, weights with adapters added."""
    state: dict[str, torch.Tensor] = dict(module.state_dict())
    for name, layer in module.named_modules():
        if isinstance(layer, AdaptedLinear):
            for key in [key for key in state if key.startswith(f"{name}.")]:
                value, own = state.pop(key), key.removeprefix(f"{name}.base.")
                if own != key:
                    state[f"{name}.{own}"] = value
            state[f"{name}.weight"] = layer.merged_weight()
    return state


def _is_linear(layer: torch.nn.Module) -> bool:
    return isinstance(layer, torch.nn.Linear) or type(layer).__name__ == "Conv1D"
