"""The whole state of training: every part that a resumed trial needs has a name here, and only named parts are kept.

Common parts are written once by the chief; the parts of a rank are gathered, so that each rank gets its own back.
"""

import copy
import io
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch

from determined.pytorch import _rng
from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._context import parameters
from determined.pytorch._reducer import load_reducer_state, reducer_state
from determined.pytorch._training_metrics import TrainingMetrics
from determined.pytorch._trial_context import TrialContext

FORMAT = 1


@dataclass
class Progress:
    """Where training stands; the same on every rank. The position in the data is ``epoch`` and ``batch_in_epoch``."""

    steps: int = 0
    epoch: int = 0
    batch_in_epoch: int = 0
    validation_due: bool = False  # a validation belongs between this step and the next and is not done
    validated_at: int | None = None
    reported_at: int = 0
    best_validation: float | None = None
    stop_requested: bool = False

    def advance(self, epoch_length: int) -> None:
        """One batch is done."""
        self.steps += 1
        self.epoch, self.batch_in_epoch = divmod(self.steps, epoch_length)


@dataclass(frozen=True)
class Extras:
    """Callbacks and reducers at one moment: a validation that is left must not show in them."""

    callbacks: dict[str, Any]
    reducers: list[dict[str, Any]]


class TrainingState:
    """Collects the parts for a checkpoint and puts them back."""

    def __init__(self, context: TrialContext, callbacks: dict[str, PyTorchCallback]) -> None:
        self._context = context
        self._callbacks = callbacks
        self.progress = Progress()
        self.running = TrainingMetrics()

    def extras(self) -> Extras:
        """Copies of the states of callbacks and reducers."""
        return Extras(
            {name: copy.deepcopy(callback.state_dict()) for name, callback in self._callbacks.items()},
            [reducer_state(reducer) for reducer, *_ in self._context._reducers],
        )

    def reset_training_reducers(self) -> None:
        """A span of training begins."""
        for reducer, _, for_training, _ in self._context._reducers:
            if for_training:
                reducer.reset()

    def rank_parts(self, extras: Extras) -> bytes:
        """What belongs to this rank alone."""
        buffer = io.BytesIO()
        torch.save(self.rank_values(extras), buffer)
        return buffer.getvalue()

    def rank_values(self, extras: Extras) -> dict[str, Any]:
        """The parts of this rank by name."""
        return {
            "streams": _rng.capture(),
            "gradients": [[p.grad for p in parameters(optimizer)] for optimizer in self._context.optimizers],
            "running": self.running.values(),
            "callbacks": extras.callbacks,
            "reducers": extras.reducers,
        }

    def common_parts(self) -> dict[str, Any]:
        """What all ranks have in common."""
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
        """The models alone, for a trial that starts warm from another's checkpoint."""
        _match("models", self._context.models, common["models_state_dict"])
        for model, state in zip(self._context.models, common["models_state_dict"], strict=True):
            bare(model).load_state_dict(state)

    def load_common(self, common: dict[str, Any]) -> None:
        """Everything that all ranks have in common."""
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
        """Where training stood."""
        known = {item.name for item in fields(Progress)}
        self.progress = Progress(**{key: value for key, value in common["progress"].items() if key in known})

    def load_rank(self, parts: dict[str, Any]) -> None:
        """What belongs to this rank, but for the random streams: those come last, right before training."""
        for optimizer, gradients in zip(self._context.optimizers, parts["gradients"], strict=True):
            for parameter, gradient in zip(parameters(optimizer), gradients, strict=True):
                parameter.grad = None if gradient is None else gradient.to(parameter.device)
        self.running.load(parts["running"])
        for name, state in parts["callbacks"].items():
            if name in self._callbacks:
                self._callbacks[name].load_state_dict(state)
        for (reducer, *_), state in zip(self._context._reducers, parts["reducers"], strict=True):
            load_reducer_state(reducer, state)


def bare(model: torch.nn.Module) -> torch.nn.Module:
    """The user's model without what makes it distributed."""
    return model.module if isinstance(model, torch.nn.parallel.DistributedDataParallel) else model


def _match(name: str, targets: list[Any], states: list[Any]) -> None:
    if len(targets) != len(states):
        raise RuntimeError(f"the checkpoint holds {len(states)} {name}, the trial has wrapped {len(targets)}")
