"""``api.utils``: Hugging Face tokenizers and models, and the models registered with them.

``transformers`` is imported when a function needs it. Names and folders are given to ``from_pretrained``; a folder on
this machine needs no network.
"""

import importlib
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed

from determined_workflows.rlhf.task import lora
from determined_workflows.rlhf.task.model import Model, register_model


def load_hf_tokenizer(model_name_or_path: str, fast_tokenizer: bool = True, padding_side: str | None = None) -> Any:  # noqa: ANN401  # transformers is imported when used
    """Returns a tokenizer; without a padding token it pads with the token that ends a text.

    Args:
        model_name_or_path: folder with a tokenizer, or a name on the hub.
        fast_tokenizer: prefer the tokenizer that is not written in Python.
        padding_side: ``left`` or ``right``; by default that of the tokenizer.

    Raises:
        FileNotFoundError: the text looks like a path, and there is no such folder.
    """
    transformers = _transformers()

    _check_path(model_name_or_path)
    given = {} if padding_side is None else {"padding_side": padding_side}
    tokenizer = transformers.AutoTokenizer.from_pretrained(model_name_or_path, use_fast=fast_tokenizer, **given)
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def create_hf_nn(
    model_class: Any,  # noqa: ANN401  # transformers is imported when used
    model_name_or_path: str,
    init_from_scratch: bool = False,
    from_pretrained_kwargs: Mapping[str, Any] | None = None,
    disable_dropout: bool = True,
) -> Any:  # noqa: ANN401  # transformers is imported when used
    """Returns a model of transformers.

    Args:
        model_class: for example ``transformers.AutoModelForCausalLM``.
        model_name_or_path: folder with a model, or a name on the hub.
        init_from_scratch: draw the weights at random; only the configuration is read.
        from_pretrained_kwargs: further arguments for ``from_pretrained``, for example ``torch_dtype``.
        disable_dropout: set every dropout probability of the configuration to 0.

    Raises:
        FileNotFoundError: the text looks like a path, and there is no such folder.
    """
    transformers = _transformers()

    _check_path(model_name_or_path)
    config = transformers.AutoConfig.from_pretrained(model_name_or_path)
    if disable_dropout:
        for name, value in config.to_dict().items():
            if ("dropout" in name or name.endswith("_pdrop")) and isinstance(value, float):
                setattr(config, name, 0.0)
    if init_from_scratch:
        make = getattr(model_class, "from_config", None) or model_class
        return make(config)
    return model_class.from_pretrained(model_name_or_path, config=config, **(from_pretrained_kwargs or {}))


def save_hf_format(
    model: Any,  # noqa: ANN401  # an engine or a module
    tokenizer: Any,  # noqa: ANN401  # transformers is imported when used
    output_dir: str | os.PathLike[str],
    exclude: Collection[str] = (),
) -> None:
    """Writes a model and its tokenizer in the form that ``from_pretrained`` reads.

    Adapters of ``causal_lm_lora`` are merged into the weights that are written.

    Args:
        model: a model of transformers, or an engine around one.
        tokenizer: its tokenizer, or None.
        output_dir: the folder; it is made if it does not exist.
        exclude: words; weights whose name contains one of them are left out.
    """
    transformers = _transformers()

    transformers.utils.logging.disable_progress_bar()
    folder = Path(output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    module = unwrapped(model)
    weights = {
        name: value
        for name, value in lora.merged_state_dict(module).items()
        if not any(word in name for word in exclude)
    }
    module.save_pretrained(str(folder), state_dict=weights)
    if tokenizer is not None:
        tokenizer.save_pretrained(str(folder))


def unwrapped(model: Any) -> Any:  # noqa: ANN401  # an engine or a module
    """Returns the module inside engines and wrappers, for example to call ``generate`` of transformers."""
    module = getattr(model, "module", None)
    return unwrapped(module) if isinstance(module, torch.nn.Module) else model


def get_all_reduce_mean(tensor: torch.Tensor) -> torch.Tensor:
    """Averages a tensor in place over the replicas of this model and returns it."""
    if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
        torch.distributed.all_reduce(tensor)
        tensor /= torch.distributed.get_world_size()
    return tensor


def _transformers() -> Any:  # noqa: ANN401  # the module, where it is installed
    return importlib.import_module("transformers")


def _check_path(text: str) -> None:
    if text.startswith((".", "/", "~")) and not Path(text).is_dir():
        raise FileNotFoundError(f"there is no folder {text}: give a folder with a model in Hugging Face's form")


def _causal_lm(
    name: str,
    device: str | torch.device,
    model_name_or_path: str,
    init_from_scratch: bool = False,
    from_pretrained_kwargs: Mapping[str, Any] | None = None,
    disable_dropout: bool = True,
    padding_side: str | None = None,
) -> Model:
    transformers = _transformers()

    module = create_hf_nn(
        transformers.AutoModelForCausalLM,
        model_name_or_path,
        init_from_scratch,
        from_pretrained_kwargs,
        disable_dropout,
    )
    return Model(name, module, load_hf_tokenizer(model_name_or_path, padding_side=padding_side), device)


def _causal_lm_lora(
    name: str,
    device: str | torch.device,
    model_name_or_path: str,
    lora_dim: int = 8,
    lora_scaling: float = 1.0,
    lora_module_name: str = "",
    only_optimize_lora: bool = True,
    **options: Any,  # noqa: ANN401  # those of causal_lm
) -> Model:
    model = _causal_lm(name, "cpu", model_name_or_path, **options)
    lora.add_adapters(model.module, lora_module_name, lora_dim, lora_scaling, only_adapters=only_optimize_lora)
    return Model(name, model.module, model.tokenizer, device)


register_model("causal_lm", _causal_lm)
register_model("causal_lm_lora", _causal_lm_lora)
