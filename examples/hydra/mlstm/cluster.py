"""The connection to a Determined cluster; absent on plain Python and on Slurm, where ``determined`` is not imported."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from mlstm.checkpoints import State


class Cluster:
    """Reports metrics, stores checkpoints and asks for preemption, in the first process of a trial."""

    def __init__(self, context: Any, latest_checkpoint: str | None, last_step: int) -> None:
        self._context = context
        self._latest_checkpoint = latest_checkpoint
        self._last_step = last_step

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Reports what begins with ``val_`` as validation, the rest as training."""
        training = {name: value for name, value in metrics.items() if not name.startswith("val_")}
        validation = {name: value for name, value in metrics.items() if name.startswith("val_")}
        if training:
            self._context.train.report_training_metrics(steps_completed=step, metrics=training)
        if validation:
            self._context.train.report_validation_metrics(steps_completed=step, metrics=validation)
        self._context.train.report_progress(step / self._last_step)

    def save(self, step: int, state: State, validation_loss: float | None) -> None:
        metadata = {"steps_completed": step, "val_loss": validation_loss}
        with self._context.checkpoint.store_path(metadata) as (path, _):
            torch.save(state, path / "state.pt")

    @contextmanager
    def latest(self) -> Iterator[Path | None]:
        """The newest checkpoint of this trial, or None in its first attempt."""
        if self._latest_checkpoint is None:
            yield None
        else:
            with self._context.checkpoint.restore_path(self._latest_checkpoint) as path:
                yield Path(path) / "state.pt"

    def should_leave(self) -> bool:
        return bool(self._context.preempt.should_preempt())

    def close(self) -> None:
        """Loggers are closed at the end; the context ends with :func:`connect`."""


@contextmanager
def connect(last_step: int) -> Iterator[Cluster | None]:
    """The cluster whose trial this process is, or None."""
    if "DET_MASTER" not in os.environ:
        yield None
        return
    import determined as det

    info = det.get_cluster_info()
    # Users of the command line set the variable too.
    if info is None or info.task_type != "TRIAL":
        yield None
        return
    with det.core.init() as context:
        yield Cluster(context, info.latest_checkpoint, last_step)
