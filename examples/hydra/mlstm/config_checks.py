"""Checks of a configuration beyond the types of its values."""

from omegaconf import DictConfig, OmegaConf

from mlstm.config_schema import Config
from mlstm.errors import ConfigError
from mlstm.loggers import check_packages


def checked(cfg: DictConfig) -> Config:
    """Returns the configuration with every value of its type.

    Raises:
        ConfigError: values are missing, or do not go together.
    """
    missing = sorted(OmegaConf.missing_keys(cfg))
    if missing:
        raise ConfigError(f"these keys have no value: {', '.join(missing)}")
    config = OmegaConf.to_object(cfg)
    assert isinstance(config, Config)
    _check_model(config)
    _check_intervals(config)
    check_packages(config.logger)
    if config.device not in ("cpu", "gpu"):
        raise ConfigError(f"device: {config.device} is neither cpu nor gpu")
    return config


def _check_model(config: Config) -> None:
    model = config.model
    if model.num_heads < 1 or model.embedding_dim % model.num_heads:
        raise ConfigError(
            f"model.num_heads: {model.num_heads} does not divide model.embedding_dim {model.embedding_dim}"
        )


def _check_intervals(config: Config) -> None:
    for key, value in (
        ("batch_size_per_device", config.batch_size_per_device),
        ("context_length", config.context_length),
        ("num_epochs", config.num_epochs),
        ("num_train_steps", config.num_train_steps),
        ("parallel.threads_per_device", config.parallel.threads_per_device),
        ("trainer.gradient_accumulation_steps", config.trainer.gradient_accumulation_steps),
        ("trainer.log_every_n_steps", config.trainer.log_every_n_steps),
        ("trainer.val_every_n_steps", config.trainer.val_every_n_steps),
        ("checkpointing.every_n_steps", config.checkpointing.every_n_steps),
        ("checkpointing.max_to_keep", config.checkpointing.max_to_keep),
        ("lr_monitor.every_n_steps", config.lr_monitor.every_n_steps),
        ("profiling.first_step", config.profiling.first_step),
        ("profiling.num_steps", config.profiling.num_steps),
    ):
        if value is not None and value < 1:
            raise ConfigError(f"{key}: {value} is less than one")
    if config.resume_from_folder is None and config.checkpoint_step != -1:
        raise ConfigError("checkpoint_step: there is no resume_from_folder whose checkpoint it could name")
    checkpointing, validation = config.checkpointing.every_n_steps, config.trainer.val_every_n_steps
    if config.checkpointing.keep_best and checkpointing % validation:
        raise ConfigError(
            f"checkpointing.every_n_steps: {checkpointing} is no multiple of trainer.val_every_n_steps {validation}, "
            "so the loss of a checkpoint would not be known and the best one could not be kept"
        )
