"""The backends ``ds_train`` and ``ds_inference``: DeepSpeed with ZeRO 0, 1 or 2, on GPUs and on the processor."""

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from determined_workflows.rlhf.task import schedules
from determined_workflows.rlhf.task.model import FinetuneSpec, Model, ModelBackend, register_backend

_TAG = "set"
_NO_BATCH_LIMIT = 1


class DeepSpeedTrainBackend(ModelBackend):
    """``ds_train``: the module of the model becomes an engine of DeepSpeed.

    Args:
        optimizer_name: ``adam``. On GPUs it is DeepSpeed's fused Adam, on the processor torch's AdamW.
        optimizer_config: its arguments: ``lr``, ``betas``, ``eps``, ``weight_decay``.
        lr_scheduler_type: ``cosine``, ``linear`` or ``constant``.
        warmup_steps_proportion: part of all train steps in which the learning rate rises from 0, from 0 to 1.
        min_lr_ratio: last learning rate, as a part of the highest one.
        zero_stage: 0, 1 or 2.
        enable_fp16: train with half precision; on the processor it is turned off, and a line says so.
        enable_bf16: train with bfloat16.
        offload_optimizer_state: keep the optimizer's state in the memory of the machine.
        gradient_checkpointing: recompute activations in the backward pass, for models of transformers.
        max_grad_norm: norm to which gradients are clipped; 0 for no clipping.
        additional_ds_config: further keys of DeepSpeed's configuration; they win.
        offload_param, enable_hybrid_engine: accepted if they are False; True is refused.

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
        zero_stage: int = 2,
        enable_fp16: bool = True,
        enable_bf16: bool = False,
        offload_optimizer_state: bool = False,
        gradient_checkpointing: bool = False,
        max_grad_norm: float = 1.0,
        additional_ds_config: Mapping[str, Any] | None = None,
        offload_param: bool = False,
        enable_hybrid_engine: bool = False,
    ) -> None:
        if offload_param or enable_hybrid_engine:
            raise ValueError("ds_train: offload_param needs ZeRO 3, and there is no hybrid engine: set both to False")
        if optimizer_name != "adam":
            raise ValueError(f"ds_train: optimizer_name is adam, not {optimizer_name!r}; torch_train has others")
        if zero_stage not in (0, 1, 2):
            raise ValueError(f"ds_train: zero_stage is 0, 1 or 2, not {zero_stage!r}")
        schedules.check(lr_scheduler_type, warmup_steps_proportion, min_lr_ratio)
        self._optimizer_config = {"lr": 1e-5, **(optimizer_config or {})}
        self._schedule = (lr_scheduler_type, warmup_steps_proportion, min_lr_ratio)
        self._zero_stage = zero_stage
        self._fp16, self._bf16 = enable_fp16, enable_bf16
        self._offload = offload_optimizer_state
        self._gradient_checkpointing = gradient_checkpointing
        self._max_grad_norm = max_grad_norm
        self._additional = dict(additional_ds_config or {})

    def _initialize(self, model: Model, spec: FinetuneSpec) -> Model:
        deepspeed = connected(model.device)
        parameters = [parameter for parameter in model.module.parameters() if parameter.requires_grad]
        if not parameters:
            raise ValueError(f"model {model.name} has no parameter that requires gradients, and ds_train trains it")
        if self._gradient_checkpointing:
            model.module.gradient_checkpointing_enable()
        optimizer = _optimizer(model.device, parameters, self._optimizer_config)
        rate = schedules.factor(*self._schedule, total_steps=spec.total_train_steps)
        engine, *_ = deepspeed.initialize(
            model=model.module,
            optimizer=optimizer,
            config=self.configuration(model.device, spec),
            lr_scheduler=lambda used: torch.optim.lr_scheduler.LambdaLR(used, rate),
            dist_init_required=False,
        )
        engine.training_files = DeepSpeedFiles(engine)
        model.module = engine
        return model

    def configuration(self, device: str | torch.device, spec: FinetuneSpec) -> dict[str, Any]:
        """Returns DeepSpeed's configuration for a model on ``device``."""
        zero: dict[str, Any] = {"stage": self._zero_stage}
        if self._offload:
            zero["offload_optimizer"] = {"device": "cpu"}
        return {
            "train_micro_batch_size_per_gpu": max(_NO_BATCH_LIMIT, spec.batch_size_per_device),
            "gradient_accumulation_steps": 1,
            "gradient_clipping": self._max_grad_norm,
            "zero_optimization": zero,
            "zero_allow_untested_optimizer": True,
            "fp16": {"enabled": has_fp16(device, enabled=self._fp16)},
            "bf16": {"enabled": self._bf16},
            "steps_per_print": 10**9,
            **self._additional,
        }


class DeepSpeedInferenceBackend(ModelBackend):
    """``ds_inference``: the module in evaluation mode, in half precision if its device has it.

    Args:
        enable_fp16: convert the weights to half precision; on the processor it is turned off, and a line says so.
    """

    def __init__(self, enable_fp16: bool = True) -> None:
        self._fp16 = enable_fp16

    def _initialize(self, model: Model, spec: FinetuneSpec) -> Model:
        model.module.eval().requires_grad_(requires_grad=False)
        if has_fp16(model.device, enabled=self._fp16):
            model.module.half()
        return model


class DeepSpeedFiles:
    """Stores and restores an engine by files; each replica calls both, because each has a part of the optimizer."""

    def __init__(self, engine: Any) -> None:  # noqa: ANN401  # deepspeed has no types
        self._engine = engine

    def store(self, folder: Path) -> None:
        """Writes this replica's part into the folder."""
        (folder / _TAG).mkdir(parents=True, exist_ok=True)
        self._engine.save_checkpoint(str(folder), tag=_TAG, save_latest=False)

    def restore(self, folder: Path) -> None:
        """Reads the folder that has the parts of all replicas. Raises RuntimeError if it has none."""
        path, _ = self._engine.load_checkpoint(str(folder), tag=_TAG)
        if path is None:
            raise RuntimeError(f"DeepSpeed finds no checkpoint in {folder}")


def connected(device: str | torch.device) -> Any:  # noqa: ANN401  # deepspeed has no types
    """Returns the module ``deepspeed`` with the process group of this model's replicas in use."""
    deepspeed = importlib.import_module("deepspeed")
    if torch.device(device).type == "cpu":
        # it would be compiled at every first start, fail without a compiler, and leave 66 MiB per rank in /dev/shm
        deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
    deepspeed.init_distributed()
    return deepspeed


def has_fp16(device: str | torch.device, *, enabled: bool) -> bool:
    """Returns True if half precision is asked for and the device has it; says so if it is turned off."""
    if enabled and torch.device(device).type == "cpu":
        print("deepspeed: fp16 is turned off: there is no GPU", flush=True)
        return False
    return enabled


def _optimizer(device: str | torch.device, parameters: list[Any], config: Mapping[str, Any]) -> torch.optim.Optimizer:
    config = {name: tuple(value) if isinstance(value, list) else value for name, value in config.items()}
    if torch.device(device).type == "cpu":
        return torch.optim.AdamW(parameters, **config)
    fused: torch.optim.Optimizer = importlib.import_module("deepspeed.ops.adam").FusedAdam(parameters, **config)
    return fused


register_backend("ds_train", DeepSpeedTrainBackend)
register_backend("ds_inference", DeepSpeedInferenceBackend)
