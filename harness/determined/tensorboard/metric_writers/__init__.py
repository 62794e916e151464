"""``MetricWriter``, the interface of writers of event files; ``pytorch.TorchWriter`` is one."""

import os
from abc import ABC, abstractmethod
from pathlib import Path

from determined_launch import environment

__all__ = ["MetricWriter"]


class MetricWriter(ABC):
    """A writer of single values into event files.

    Example:
        >>> class Printer(MetricWriter):
        ...     def add_scalar(self, name, value, step):
        ...         print(name, value, step)
        >>> Printer().add_scalar("loss", 0.5, 3)
        loss 0.5 3
    """

    @abstractmethod
    def add_scalar(self, name: str, value: float, step: int) -> None:
        """Adds one value.

        Args:
            name: name of the curve.
            value: its value at the step.
            step: number of trained batches, or another count that grows.
        """

    def reset(self) -> None:
        """Begins a new file of events; by default it only flushes."""
        self.flush()

    def flush(self) -> None:  # noqa: B027  # most writers need none
        """Writes what is still in memory to the files."""


def event_folder() -> Path:
    """Returns the folder of the trial's event files, as ``core_context.train.get_tensorboard_path()`` does; off the
    cluster ``tensorboard`` in the working directory. It is created if necessary."""
    environ = environment.current()
    above = environ.get(environment.RUN_DIR) if environ.get(environment.ALLOCATION_ID) else None
    path = Path(above or os.curdir, "tensorboard")
    path.mkdir(parents=True, exist_ok=True)
    return path
