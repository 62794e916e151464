"""``TorchWriter``: torch's ``SummaryWriter`` in the trial's folder of event files."""

import importlib
from typing import Any

from determined.tensorboard.metric_writers import MetricWriter, event_folder

__all__ = ["TorchWriter"]


class TorchWriter(MetricWriter):
    """Writes event files with torch, where ``core_context.train.get_tensorboard_path()`` is.

    The folder is removed with the run folder when the trial has ended; metrics that are reported by
    ``core_context.train`` are on the web page without it.

    Attributes:
        writer: the ``torch.utils.tensorboard.SummaryWriter``.

    Raises:
        ModuleNotFoundError: torch or tensorboard is not installed in the environment of the task.

    Example:
        >>> writer = TorchWriter().writer  # doctest: +SKIP
        >>> writer.add_scalar("loss", 0.5, 3)  # doctest: +SKIP
    """

    def __init__(self) -> None:
        try:
            module = importlib.import_module("torch.utils.tensorboard")
        except ModuleNotFoundError as error:
            missing = (error.name or "tensorboard").partition(".")[0]
            raise ModuleNotFoundError(
                f"TorchWriter needs torch and tensorboard, but {missing} is not installed in this environment: pip "
                "install torch tensorboard, or select an environment.image that has them",
                name=missing,
            ) from None
        self.writer: Any = module.SummaryWriter(log_dir=str(event_folder()))

    def add_scalar(self, name: str, value: float, step: int) -> None:
        """Adds one value.

        Args:
            name: name of the curve.
            value: its value at the step.
            step: number of trained batches, or another count that grows.
        """
        self.writer.add_scalar(name, value, step)

    def reset(self) -> None:
        """Ends the file of events; the next value begins a new one."""
        self.writer.close()

    def flush(self) -> None:
        """Writes what is still in memory to the files."""
        self.writer.flush()
