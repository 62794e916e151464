"""Keeps the training state in checkpoints and brings it back."""

import json
import logging
from pathlib import Path
from typing import Any

import torch

import determined
from determined.pytorch import _saving, _streams
from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._context import PyTorchTrialContext
from determined.pytorch._state import Extras, TrainingState
from determined.pytorch._trial import PyTorchTrial

logger = logging.getLogger(__name__)


class Keeper:
    """Saves and restores one trial; ``saved_at`` is the step of the newest checkpoint."""

    def __init__(
        self,
        trial: PyTorchTrial,
        context: PyTorchTrialContext,
        callbacks: dict[str, PyTorchCallback],
        state: TrainingState,
    ) -> None:
        self._trial = trial
        self._context = context
        self._callbacks = list(callbacks.values())
        self._state = state
        self._streams: dict[str, Any] | None = None
        self.saved_at: int | None = None
        self.uuid: str | None = None

    def save(self, extras: Extras | None = None) -> None:
        """Stores everything; with ``extras`` callbacks and reducers as they were then. No random stream moves."""
        context, distributed = self._context, self._context.distributed
        mine = self._state.rank_parts(extras or self._state.extras())
        with _streams.untouched():
            ranks = distributed.gather(mine)
            checkpoint: dict[str, Any] = {}
            if distributed.rank == 0:
                checkpoint = {**self._state.common_parts(), "ranks": ranks}
            for callback in self._callbacks:
                callback.on_checkpoint_save_start(checkpoint)
            uuid = None
            if distributed.rank == 0:
                with context._core.checkpoint.store_path(self._metadata()) as (path, uuid):
                    code = Path.cwd() if context._core.info is not None else None
                    _saving.write(path, checkpoint, self._load_data(), code)
                    for callback in self._callbacks:
                        callback.on_checkpoint_write_end(str(path))
                        callback.on_checkpoint_end(str(path))
                logger.info("checkpoint %s after %d batches", uuid, self._state.progress.steps)
            uuid = distributed.broadcast(uuid)
            self.saved_at, self.uuid = self._state.progress.steps, str(uuid)
            for callback in self._callbacks:
                callback.on_checkpoint_upload_end(str(uuid))

    def load(self, uuid: str) -> None:
        """Brings back the whole state; from another trial's checkpoint the weights alone."""
        context = self._context
        with context._core.checkpoint.restore_path(uuid) as path:
            own = json.loads((path / _saving.LOAD_FILE).read_text(encoding="utf-8"))
            trusted = own.get("experiment_id") == context.get_experiment_id()
            checkpoint = _saving.read(path, trusted=trusted)
        for callback in self._callbacks:
            callback.on_checkpoint_load_start(checkpoint)
        if own.get("trial_id") != context.get_trial_id():
            logger.info("starting warm from checkpoint %s of trial %s", uuid, own.get("trial_id"))
            self._state.load_weights(checkpoint)
            return
        self._state.load_common(checkpoint)
        ranks = checkpoint["ranks"]
        if len(ranks) != context.distributed.size:
            logger.warning(
                "the checkpoint is of %d slots, this attempt has %d: random streams start anew",
                len(ranks),
                context.distributed.size,
            )
        else:
            parts = _saving.read_rank(ranks[context.distributed.rank], trusted=trusted)
            self._state.load_rank(parts)
            self._streams = parts["streams"]
        self.saved_at = self._state.progress.steps
        logger.info("continuing from checkpoint %s after %d batches", uuid, self.saved_at)

    def round_trip(self) -> None:
        """Reads the newest checkpoint back and removes it: what a test of the trial wants to know."""
        if self.uuid is None:
            raise RuntimeError("no checkpoint was stored")
        self.load(self.uuid)
        if self._context.distributed.rank == 0:
            self._context._core.checkpoint.delete(self.uuid)

    def restore_streams(self) -> None:
        """The last thing before training: whatever was drawn while setting up does not count."""
        if self._streams is not None:
            _streams.restore(self._streams)
            self._streams = None

    def _metadata(self) -> dict[str, Any]:
        return {
            "steps_completed": self._state.progress.steps,
            "determined_version": determined.__version__,
            "framework": f"torch-{torch.__version__}",
            "format": "pickle",
        }

    def _load_data(self) -> dict[str, Any]:
        kind = type(self._trial)
        return {
            "trial_type": "PyTorchTrial",
            "trial_cls_spec": f"{kind.__module__}:{kind.__qualname__}",
            "trial_id": self._context.get_trial_id(),
            "experiment_id": self._context.get_experiment_id(),
            "experiment_config": self._context.get_experiment_config(),
            "hparams": self._context.get_hparams(),
            "is_trainer": True,
        }
