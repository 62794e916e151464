"""The whole state of training. Every part that a resumed trial needs has a name here; only named parts are saved.

The chief writes the parts that all ranks share; the parts of the ranks are gathered, and each rank gets its own back.
"""

import copy
import io
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch

from determined.pytorch import _rng
from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._context import parameters
from determined.pytorch._data import TrainingSource
from determined.pytorch._reducer import load_reducer_state, reducer_state
from determined.pytorch._training_metrics import TrainingMetrics
from determined.pytorch._trial_context import TrialContext

FORMAT = 1


@dataclass
class TrainingProgress:
    """The progress of training, equal on all ranks. ``epoch`` and ``batch_in_epoch`` are the position in the data."""

    steps: int = 0
    epoch: int = 0
    batch_in_epoch: int = 0
    validation_due: bool = False  # a validation between this step and the next is due and not done
    validated_at: int | None = None
    reported_at: int = 0
    best_validation: float | None = None
    stop_requested: bool = False

    def advance(self, epoch_length: int) -> None:
        """Counts one completed batch."""
        self.steps += 1
        self.epoch, self.batch_in_epoch = divmod(self.steps, epoch_length)


@dataclass(frozen=True)
class Extras:
    """Copies of the states of callbacks and reducers.

    They keep an interrupted validation from changing the saved state.
    """

    callbacks: dict[str, Any]
    reducers: list[dict[str, Any]]


class TrainingState:
    """Collects the parts of the state for a checkpoint and restores them."""

    def __init__(
        self, context: TrialContext, callbacks: dict[str, PyTorchCallback], training: TrainingSource | None
    ) -> None:
        self._context = context
        self._callbacks = callbacks
        self._source = training
        self.reducers = context._reducers  # noqa: SLF001  # hidden from trials, not from the trainer
        self.progress = TrainingProgress()
        self.running = TrainingMetrics()

    def extras(self) -> Extras:
        """Returns copies of the states of callbacks and reducers."""
        return Extras(
            {name: copy.deepcopy(callback.state_dict()) for name, callback in self._callbacks.items()},
            [reducer_state(reducer) for reducer, *_ in self.reducers],
        )

    def reset_training_reducers(self) -> None:
        """Resets the reducers at the begin of a training period."""
        for reducer, _, for_training, _ in self.reducers:
            if for_training:
                reducer.reset()

    def rank_parts(self, extras: Extras) -> bytes:
        """Returns the parts that belong to this rank."""
        buffer = io.BytesIO()
        torch.save(self.rank_values(extras), buffer)
        return buffer.getvalue()

    def rank_values(self, extras: Extras) -> dict[str, Any]:
        """Returns the values of this rank by name."""
        return {
            "streams": _rng.capture(),
            "gradients": [[p.grad for p in parameters(optimizer)] for optimizer in self._context.optimizers],
            "running": self.running.values(),
            "callbacks": extras.callbacks,
            "reducers": extras.reducers,
            "data": {} if self._source is None else self._source.states(),
        }

    def common_parts(self) -> dict[str, Any]:
        """Returns the parts that all ranks share."""
        context = self._context
        return {
            "format": FORMAT,
            "progress": asdict(self.progress),
            "models_state_dict": [bare(model).state_dict() for model in context.models],
            "optimizers_state_dict": [optimizer.state_dict() for optimizer in context.optimizers],
            "lr_schedulers_state_dict": [scheduler.state_dict() for scheduler in context.lr_schedulers],
            "scalers_state_dict": [scaler.state_dict() for scaler in context.scalers],
        }

    def load_weights(self, common: dict[str, Any]) -> None:
        """Loads only the models, for a trial that starts from another trial's checkpoint."""
        _match("models", self._context.models, common["models_state_dict"])
        for model, state in zip(self._context.models, common["models_state_dict"], strict=True):
            bare(model).load_state_dict(state)

    def load_common(self, common: dict[str, Any]) -> None:
        """Loads the parts that all ranks share."""
        self.load_weights(common)
        context = self._context
        for name, targets in (
            ("optimizers", context.optimizers),
            ("lr_schedulers", context.lr_schedulers),
            ("scalers", context.scalers),
        ):
            states = common[f"{name}_state_dict"]
            _match(name, targets, states)
            for target, state in zip(targets, states, strict=True):
                target.load_state_dict(state)
        self.load_progress(common)

    def load_progress(self, common: dict[str, Any]) -> None:
        """Loads the progress of training."""
        known = {item.name for item in fields(TrainingProgress)}
        self.progress = TrainingProgress(**{key: value for key, value in common["progress"].items() if key in known})

    def load_rank(self, parts: dict[str, Any]) -> None:
        """Loads the parts of this rank except the random streams, which are restored last, right before training."""
        for optimizer, gradients in zip(self._context.optimizers, parts["gradients"], strict=True):
            for parameter, gradient in zip(parameters(optimizer), gradients, strict=True):
                parameter.grad = None if gradient is None else gradient.to(parameter.device)
        self.running.load(parts["running"])
        for name, state in parts["callbacks"].items():
            if name in self._callbacks:
                self._callbacks[name].load_state_dict(state)
        for (reducer, *_), state in zip(self.reducers, parts["reducers"], strict=True):
            load_reducer_state(reducer, state)
        if self._source is not None:
            self._source.load_states(parts.get("data", {}))


def bare(model: torch.nn.Module) -> torch.nn.Module:
    """Returns the user's model without its distributed wrapper."""
    return model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model


def _match(name: str, targets: list[Any], states: list[Any]) -> None:
    if len(targets) != len(states):
        raise RuntimeError(f"the checkpoint holds {len(states)} {name}, the trial has wrapped {len(targets)}")
