"""Where metrics are written: a file, TensorBoard, Weights & Biases."""

import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from mlstm.config_schema import Config, LoggerConfig
from mlstm.errors import ConfigError


class MetricLogger(Protocol):
    def log(self, step: int, metrics: Mapping[str, float]) -> None: ...

    def close(self) -> None: ...


def check_packages(config: LoggerConfig) -> None:
    """Raises ConfigError if a logger needs a package that is not installed."""
    for key, asked, package in (
        ("logger.tensorboard", config.tensorboard, "tensorboard"),
        ("logger.wandb", config.wandb, "wandb"),
    ):
        if asked and importlib.util.find_spec(package) is None:
            raise ConfigError(f"{key}: the package {package} is not installed; `pip install {package}` adds it")


def open_loggers(config: Config, folder: Path) -> list[MetricLogger]:
    """Returns the loggers of a run, which write into its folder."""
    found: list[MetricLogger] = []
    if config.logger.file is not None:
        found.append(FileLogger(folder / config.logger.file))
    if config.logger.tensorboard:
        found.append(TensorBoardLogger(folder / "tensorboard"))
    if config.logger.wandb:
        found.append(WandbLogger(config.task_name, folder))
    return found


class FileLogger:
    """One JSON object a line, written at once."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._file.write(json.dumps({"step": step, **metrics}) + "\n")

    def close(self) -> None:
        self._file.close()


class TensorBoardLogger:
    """Event files for ``tensorboard --logdir``."""

    def __init__(self, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter  # slow to import, and seldom asked for

        self._writer: Any = SummaryWriter(str(folder))

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()


class WandbLogger:
    """A run of Weights & Biases that needs no network; ``wandb sync`` sends it."""

    def __init__(self, project: str, folder: Path) -> None:
        import wandb

        self._run: Any = wandb.init(project=project, dir=str(folder), mode="offline")

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        self._run.finish()
