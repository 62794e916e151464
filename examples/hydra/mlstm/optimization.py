"""Optimizers, and the learning rate of each step."""

import math
from collections.abc import Iterable

import torch

from mlstm.config_schema import (
    AdamWConfig,
    CosineConfig,
    LinearWarmupConfig,
    OptimizerConfig,
    SchedulerConfig,
    SGDConfig,
)


def build_optimizer(config: OptimizerConfig, parameters: Iterable[torch.nn.Parameter]) -> torch.optim.Optimizer:
    if isinstance(config, AdamWConfig):
        betas = (config.beta1, config.beta2)
        return torch.optim.AdamW(
            parameters, lr=config.lr, betas=betas, eps=config.eps, weight_decay=config.weight_decay
        )
    assert isinstance(config, SGDConfig)
    return torch.optim.SGD(parameters, lr=config.lr, momentum=config.momentum, weight_decay=config.weight_decay)


def lr_share(config: SchedulerConfig, step: int, last_step: int) -> float:
    """Returns the learning rate of a step as a share of the highest one.

    Steps count from zero. A function of the step alone needs no state in checkpoints.
    """
    if not isinstance(config, (CosineConfig, LinearWarmupConfig)):
        return 1.0
    if step < config.warmup_steps:
        return (step + 1) / config.warmup_steps
    if isinstance(config, LinearWarmupConfig):
        return 1.0
    progress = (step - config.warmup_steps) / max(1, last_step - config.warmup_steps)
    return config.final_share + (1 - config.final_share) * (1 + math.cos(math.pi * progress)) / 2
