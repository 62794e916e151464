"""Saves the training state in checkpoints and restores it."""

import json
import logging
from pathlib import Path
from typing import Any

import torch

from determined.pytorch import _rng, _saving
from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._state import Extras, TrainingState
from determined.pytorch._trial import Trial
from determined.pytorch._trial_context import TrialContext
from determined_launch.version import __version__

logger = logging.getLogger(__name__)


class Checkpointer:
    """Saves and restores one trial. ``saved_at`` is the step of the newest checkpoint."""

    def __init__(
        self,
        trial: Trial,
        context: TrialContext,
        callbacks: dict[str, PyTorchCallback],
        state: TrainingState,
    ) -> None:
        self._trial = trial
        self._context = context
        self._core = context._core  # noqa: SLF001  # hidden from trials, not from the trainer
        self._callbacks = list(callbacks.values())
        self._state = state
        self._streams: dict[str, Any] | None = None
        self.saved_at: int | None = None
        self.uuid: str | None = None

    def save(self, extras: Extras | None = None) -> None:
        """Saves the whole state without advancing a random stream.

        ``extras`` replaces the state of callbacks and reducers.
        """
        mine = self._state.rank_parts(extras or self._state.extras())
        with _rng.untouched():
            uuid = self._store(mine)
            self.saved_at, self.uuid = self._state.progress.steps, uuid
            for callback in self._callbacks:
                callback.on_checkpoint_upload_end(uuid)

    def load(self, uuid: str) -> None:
        """Restores the whole state; from another trial's checkpoint only the weights."""
        context = self._context
        with self._core.checkpoint.restore_path(uuid) as path:
            own = json.loads((path / _saving.LOAD_FILE).read_text(encoding="utf-8"))
            known = self._owner(uuid)
            owner = own if known is None else known
            trusted = owner.get("experiment_id") == context.get_experiment_id()
            checkpoint = _saving.read(path, trusted=trusted)
            for callback in self._callbacks:
                callback.on_checkpoint_load_start(checkpoint)
            if owner.get("trial_id") != context.get_trial_id():
                logger.info("starting warm from checkpoint %s of trial %s", uuid, owner.get("trial_id"))
                self._load_weights(path, checkpoint)
                return
            self._load_common(path, checkpoint)
            data = self._rank_data(path, checkpoint)
        if data is None:
            logger.warning(
                "the checkpoint has another number of slots than this attempt (%d): random generators restart",
                context.distributed.size,
            )
        else:
            parts = _saving.read_rank(data, trusted=trusted)
            self._state.load_rank(parts)
            self._streams = parts["streams"]
        self.saved_at = self._state.progress.steps
        logger.info("continuing from checkpoint %s after %d batches", uuid, self.saved_at)

    def round_trip(self) -> None:
        """Reads the newest checkpoint back and removes it.

        Test mode uses this to check that the state can be restored.
        """
        if self.uuid is None:
            raise RuntimeError("no checkpoint was stored")
        self.load(self.uuid)
        if self._context.distributed.rank == 0:
            self._core.checkpoint.delete(self.uuid)

    def restore_streams(self) -> None:
        """Restores the random streams. Runs last before training, so that draws during the set-up have no effect."""
        if self._streams is not None:
            _rng.restore(self._streams)
            self._streams = None

    def _owner(self, uuid: str) -> dict[str, Any] | None:
        """Returns whose checkpoint it is by the master's word: a file can claim anything. None off the cluster."""
        distributed = self._context.distributed
        checkpoint = self._core.checkpoint
        asked = checkpoint._owner(uuid) if distributed.rank == 0 else None  # noqa: SLF001  # hidden from trials, not from the trainer
        owner: dict[str, Any] | None = distributed.broadcast(asked)
        return owner

    def _store(self, mine: bytes) -> str:
        """Writes everything into one file on the chief, which gathers the parts of all ranks."""
        distributed = self._context.distributed
        ranks = distributed.gather(mine)
        checkpoint: dict[str, Any] = {}
        if distributed.rank == 0:
            checkpoint = {**self._state.common_parts(), "ranks": ranks}
        for callback in self._callbacks:
            callback.on_checkpoint_save_start(checkpoint)
        uuid = None
        if distributed.rank == 0:
            with self._core.checkpoint.store_path(self._metadata()) as (path, uuid):
                self._write(path, checkpoint)
            logger.info("checkpoint %s after %d batches", uuid, self._state.progress.steps)
        return str(distributed.broadcast(uuid))

    def _write(self, path: Path, checkpoint: dict[str, Any]) -> None:
        code = Path.cwd() if self._core.info is not None else None
        _saving.write(path, checkpoint, self._load_data(), code)
        for callback in self._callbacks:
            callback.on_checkpoint_write_end(str(path))
            callback.on_checkpoint_end(str(path))

    def _load_weights(self, path: Path, checkpoint: dict[str, Any]) -> None:
        self._state.load_weights(checkpoint)

    def _load_common(self, path: Path, checkpoint: dict[str, Any]) -> None:
        self._state.load_common(checkpoint)

    def _rank_data(self, path: Path, checkpoint: dict[str, Any]) -> bytes | None:
        """Returns this rank's parts; None if the checkpoint was written by another number of ranks."""
        ranks: list[bytes] = checkpoint["ranks"]
        return ranks[self._context.distributed.rank] if len(ranks) == self._context.distributed.size else None

    def _metadata(self) -> dict[str, Any]:
        return {
            "steps_completed": self._state.progress.steps,
            "determined_version": __version__,
            "framework": f"torch-{torch.__version__}",
            "format": "pickle",
        }

    def _load_data(self) -> dict[str, Any]:
        kind = type(self._trial)
        return {
            "trial_type": self._trial.kind,
            "trial_cls_spec": f"{kind.__module__}:{kind.__qualname__}",
            "trial_id": self._context.get_trial_id(),
            "experiment_id": self._context.get_experiment_id(),
            "experiment_config": self._context.get_experiment_config(),
            "hparams": self._context.get_hparams(),
            "is_trainer": True,
        }
