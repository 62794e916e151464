"""Training state and checkpoints of engines: each rank writes the engine's own files, the chief the common parts."""

import logging
from pathlib import Path
from typing import Any

import torch

from determined.pytorch import _saving
from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._checkpointer import Checkpointer
from determined.pytorch._state import FORMAT, Extras, TrainingState
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext
from determined.pytorch.deepspeed._stream import TrainingData
from determined.pytorch.deepspeed._trial import DeepSpeedTrial, load_engines

logger = logging.getLogger(__name__)


class EngineState(TrainingState):
    """The training state without models, optimizers and schedulers, which the engines save themselves."""

    def __init__(
        self, context: DeepSpeedTrialContext, callbacks: dict[str, PyTorchCallback], training: TrainingData
    ) -> None:
        super().__init__(context, callbacks, training)
        self._training = training

    def rank_values(self, extras: Extras) -> dict[str, Any]:
        return {
            **super().rank_values(extras),
            "taken": self._training.stream.taken,
            # an engine saves only the chief's buffers and does not share them in training
            "buffers": [list(engine.buffers()) for engine in self._context.models],
        }

    def common_parts(self) -> dict[str, Any]:
        peers = self._context.distributed
        return {"format": FORMAT, "size": peers.size, "progress": vars(self.progress).copy()}

    def load_common(self, common: dict[str, Any]) -> None:
        self.load_progress(common)
        self._training.stream.taken = self.progress.steps * self._training.micro_batches

    def load_rank(self, parts: dict[str, Any]) -> None:
        super().load_rank(parts)
        self._training.stream.taken = parts["taken"]
        with torch.no_grad():
            for engine, buffers in zip(self._context.models, parts["buffers"], strict=True):
                for buffer, value in zip(engine.buffers(), buffers, strict=True):
                    buffer.copy_(value)


class EngineKeeper(Checkpointer):
    """Saves and restores a trial with engines; every rank writes and reads its own files."""

    def __init__(
        self,
        trial: DeepSpeedTrial,
        context: DeepSpeedTrialContext,
        callbacks: dict[str, PyTorchCallback],
        state: EngineState,
    ) -> None:
        super().__init__(trial, context, callbacks, state)
        self._engine_trial = trial
        self._engine_context = context

    def _store(self, mine: bytes) -> str:
        for number, engine in enumerate(self._engine_context.models):
            done = int(getattr(engine, "micro_steps", 0)) % int(engine.gradient_accumulation_steps())
            if done:
                raise RuntimeError(
                    f"engine {number} is {done} micro batches into a batch, whose gradients a checkpoint would lose: "
                    "train_batch has to call engine.step() once for each micro batch"
                )
        rank = self._context.distributed.rank
        checkpoint = self._state.common_parts()
        for callback in self._callbacks:
            callback.on_checkpoint_save_start(checkpoint)
        with self._core.checkpoint.store_path(self._metadata(), shard=True) as (path, uuid):
            self._engine_trial.save(self._engine_context, path)
            _rank_file(path, rank).write_bytes(mine)
            if rank == 0:
                self._write(path, checkpoint)
        logger.info("checkpoint %s after %d batches", uuid, self._state.progress.steps)
        return uuid

    def _load_weights(self, path: Path, checkpoint: dict[str, Any]) -> None:
        if type(self._engine_trial).load is DeepSpeedTrial.load:
            load_engines(self._engine_context, path, weights_only=True)
        else:
            self._engine_trial.load(self._engine_context, path)

    def _load_common(self, path: Path, checkpoint: dict[str, Any]) -> None:
        super()._load_common(path, checkpoint)
        self._engine_trial.load(self._engine_context, path)

    def _rank_data(self, path: Path, checkpoint: dict[str, Any]) -> bytes | None:
        peers = self._context.distributed
        return _rank_file(path, peers.rank).read_bytes() if checkpoint["size"] == peers.size else None

    def _metadata(self) -> dict[str, Any]:
        deepspeed = _saving.version_of("deepspeed")
        return {**super()._metadata(), "framework": f"deepspeed-{deepspeed}"}


def _rank_file(path: Path, rank: int) -> Path:
    return path / f"rank-{rank}.pth"
