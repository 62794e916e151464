"""Checkpoints in the folder of a run: ``<folder>/step_<N>/state.pt``, N the number of finished steps."""

import copy
import json
import math
import re
import shutil
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from mlstm.config_schema import CheckpointingConfig
from mlstm.errors import ConfigError

State = dict[str, Any]


class FolderCheckpoints:
    """Writes checkpoints and deletes those that need not be kept.

    A checkpoint is complete once its folder has its name. With ``asynchronous``, training goes on while a copy of the
    state is written; an error of the writer is raised by the next :meth:`save` or by :meth:`close`.
    """

    def __init__(self, config: CheckpointingConfig, run_folder: Path) -> None:
        self._config = config
        self.folder = run_folder / config.folder
        self._writer = ThreadPoolExecutor(max_workers=1) if config.asynchronous else None
        self._pending: Future[None] | None = None

    def save(self, step: int, state: State, validation_loss: float | None) -> None:
        """Saves a state with the newest validation loss, by which the best one is chosen."""
        self._wait()
        if self._writer is None:
            self._write(step, state, validation_loss)
        else:
            self._pending = self._writer.submit(self._write, step, copy.deepcopy(state), validation_loss)

    def close(self) -> None:
        """Waits for what is being written."""
        try:
            self._wait()
        finally:
            if self._writer is not None:
                self._writer.shutdown()

    def _wait(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.result()

    def _write(self, step: int, state: State, validation_loss: float | None) -> None:
        part = self.folder / f".step_{step}.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        torch.save(state, part / "state.pt")
        (part / "metrics.json").write_text(json.dumps({"val_loss": validation_loss}))
        final = self.folder / f"step_{step}"
        shutil.rmtree(final, ignore_errors=True)
        part.rename(final)
        losses = {each: _loss_of(self.folder / f"step_{each}") for each in saved_steps(self.folder)}
        for each in steps_to_delete(losses, self._config.max_to_keep, keep_best=self._config.keep_best):
            shutil.rmtree(self.folder / f"step_{each}")


def steps_to_delete(losses: Mapping[int, float], max_to_keep: int | None, *, keep_best: bool) -> list[int]:
    """Returns the steps of which no checkpoint is kept, oldest first.

    Kept are the ``max_to_keep`` newest (all where None) and, with ``keep_best``, the one with the lowest loss.
    """
    steps = sorted(losses)
    kept = set(steps if max_to_keep is None else steps[-max_to_keep:])
    if keep_best and steps:
        kept.add(min(steps, key=lambda step: losses[step]))
    return [step for step in steps if step not in kept]


def saved_steps(folder: Path) -> list[int]:
    """Returns the steps of the complete checkpoints in a folder, in ascending order."""
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(found[1]) for name in names if (found := re.fullmatch(r"step_(\d+)", name)))


def find_checkpoint(run_folder: Path, folder_name: str, step: int) -> Path:
    """Returns the file of a checkpoint in another run's folder; step -1 is the newest.

    Raises:
        ConfigError: there is no such folder or checkpoint.
    """
    folder = run_folder / folder_name
    steps = saved_steps(folder)
    if not steps:
        raise ConfigError(f"resume_from_folder: {folder} has no checkpoint")
    wanted = steps[-1] if step == -1 else step
    if wanted not in steps:
        raise ConfigError(f"checkpoint_step: {folder} has no step_{step}; it has {', '.join(map(str, steps))}")
    return folder / f"step_{wanted}" / "state.pt"


def _loss_of(folder: Path) -> float:
    loss = json.loads((folder / "metrics.json").read_text())["val_loss"]
    return math.inf if loss is None else float(loss)
