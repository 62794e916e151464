"""The types of every key of the configuration, registered with Hydra as ``config_schema``.

A value of another type and a key that is not here are errors before anything is trained. A group whose choices have
different keys has one class for each choice; the choice's file names it in its defaults list.
"""

from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class ParallelConfig:
    data_axis_name: str = MISSING
    devices: int | None = None
    threads_per_device: int = MISSING


@dataclass
class DataConfig:
    vocab_size: int = MISSING


@dataclass
class SyntheticConfig(DataConfig):
    num_train_samples: int = MISSING
    num_validation_samples: int = MISSING
    noise: float = MISSING


@dataclass
class TextConfig(DataConfig):
    path: str = MISSING
    validation_share: float = MISSING


@dataclass
class ModelConfig:
    name: str = MISSING
    embedding_dim: int = MISSING
    num_blocks: int = MISSING
    num_heads: int = MISSING
    vocab_size: int = MISSING


@dataclass
class OptimizerConfig:
    lr: float = MISSING
    weight_decay: float = MISSING


@dataclass
class AdamWConfig(OptimizerConfig):
    beta1: float = MISSING
    beta2: float = MISSING
    eps: float = MISSING


@dataclass
class SGDConfig(OptimizerConfig):
    momentum: float = MISSING


@dataclass
class SchedulerConfig:
    """Its subclasses are the schedules."""


@dataclass
class ConstantConfig(SchedulerConfig):
    pass


@dataclass
class CosineConfig(SchedulerConfig):
    warmup_steps: int = MISSING
    final_share: float = MISSING


@dataclass
class LinearWarmupConfig(SchedulerConfig):
    warmup_steps: int = MISSING


@dataclass
class TrainerConfig:
    gradient_accumulation_steps: int = MISSING
    gradient_clip_norm: float | None = MISSING
    log_every_n_steps: int = MISSING
    val_every_n_steps: int = MISSING


@dataclass
class CheckpointingConfig:
    folder: str = MISSING
    every_n_steps: int = MISSING
    max_to_keep: int | None = MISSING
    keep_best: bool = MISSING
    asynchronous: bool = MISSING


@dataclass
class LoggerConfig:
    file: str | None = MISSING
    tensorboard: bool = MISSING
    wandb: bool = MISSING


@dataclass
class LrMonitorConfig:
    every_n_steps: int | None = MISSING


@dataclass
class ProfilingConfig:
    first_step: int | None = MISSING
    num_steps: int = MISSING


@dataclass
class Config:
    task_name: str = MISSING
    logging_name: str = MISSING
    seed: int = MISSING
    device: str = MISSING
    batch_size_per_device: int = MISSING
    context_length: int = MISSING
    num_epochs: int = MISSING
    num_train_steps: int = MISSING
    lr: float = MISSING
    resume_from_folder: str | None = None
    checkpoint_step: int = -1
    parallel: ParallelConfig = MISSING
    data: DataConfig = MISSING
    model: ModelConfig = MISSING
    optimizer: OptimizerConfig = MISSING
    scheduler: SchedulerConfig = MISSING
    trainer: TrainerConfig = MISSING
    checkpointing: CheckpointingConfig = MISSING
    logger: LoggerConfig = MISSING
    lr_monitor: LrMonitorConfig = MISSING
    profiling: ProfilingConfig = MISSING


CHOICES: dict[str, dict[str, type[Any]]] = {
    "data": {"synthetic_schema": SyntheticConfig, "text_schema": TextConfig},
    "optimizer": {"adamw_schema": AdamWConfig, "sgd_schema": SGDConfig},
    "scheduler": {
        "constant_schema": ConstantConfig,
        "cosine_schema": CosineConfig,
        "linear_warmup_schema": LinearWarmupConfig,
    },
}


def register() -> None:
    """Makes the schemas known to Hydra, which looks for them by the names in defaults lists."""
    store = ConfigStore.instance()
    store.store(name="config_schema", node=Config)
    for group, schemas in CHOICES.items():
        for name, node in schemas.items():
            store.store(group=group, name=name, node=node)
