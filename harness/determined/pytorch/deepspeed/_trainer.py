"""The trainer of a DeepSpeedTrial: the same loop, periods and policies as PyTorch's."""

from collections.abc import Callable
from typing import Any

import torch

from determined.pytorch._callbacks import PyTorchCallback
from determined.pytorch._checkpointer import Checkpointer
from determined.pytorch._data import Data, TrainingSource
from determined.pytorch._reducer import reduce_metric
from determined.pytorch._state import TrainingState
from determined.pytorch._trainer import BaseTrainer
from determined.pytorch._trial_adapter import TRAINING_DATA, VALIDATION_DATA, batches
from determined.pytorch.deepspeed._context import DeepSpeedTrialContext
from determined.pytorch.deepspeed._state import EngineKeeper, EngineState
from determined.pytorch.deepspeed._stream import TrainingData, ValidationData
from determined.pytorch.deepspeed._trial import DeepSpeedTrial


class Trainer(BaseTrainer):
    """Trains a :class:`DeepSpeedTrial`; ``fit`` takes the arguments of :meth:`determined.pytorch.Trainer.fit`.

    Args:
        trial: the trial.
        context: the context that the trial was made with.

    >>> with deepspeed.init() as context:  # doctest: +SKIP
    ...     Trainer(MyTrial(context), context).fit(max_length=Batch(100))
    """

    def __init__(self, trial: DeepSpeedTrial, context: DeepSpeedTrialContext) -> None:
        super().__init__(DeepSpeedAdapter(trial, context))


class DeepSpeedAdapter:
    """Connects a :class:`DeepSpeedTrial` to the trainer."""

    def __init__(self, trial: DeepSpeedTrial, context: DeepSpeedTrialContext) -> None:
        self.trial = trial
        self.context = context
        self._training: TrainingData | None = None
        context.experimental.auto_to_device = False  # the trial reads its batches itself
        counts = {int(engine.gradient_accumulation_steps()) for engine in context.models}
        if len(counts) > 1 and not context._one_call:  # noqa: SLF001  # hidden from trials, not from the trainer
            raise ValueError(
                f"the engines differ in gradient_accumulation_steps ({sorted(counts)}): "
                "call context.disable_auto_grad_accumulation() and take the micro batches in train_batch"
            )

    def training_data(self, loader: object) -> TrainingSource:
        data = batches(self.context, loader, TRAINING_DATA, repeat=True)
        self._training = TrainingData(data, self.context.get_num_micro_batches_per_slot())
        return self._training

    def validation_data(self, loader: object) -> Data:
        return ValidationData(batches(self.context, loader, VALIDATION_DATA, repeat=False))

    def global_batch_size(self) -> int | None:
        return int(self.context._engine().train_batch_size())  # noqa: SLF001  # hidden from trials, not from the trainer

    def train_batch(self) -> Callable[[Any, int, int], Any]:
        one = self.trial.train_batch
        is_one_call = self.context._one_call  # noqa: SLF001  # hidden from trials, not from the trainer
        count = 1 if is_one_call else self.context.get_num_micro_batches_per_slot()
        if count == 1:
            return one

        def train(stream: object, epoch: int, steps: int) -> Any:  # noqa: ANN401  # deepspeed has no types, and only the trial knows its batches
            return averaged([one(stream, epoch, steps) for _ in range(count)])

        return train

    def keeping(
        self, callbacks: dict[str, PyTorchCallback], training: TrainingSource
    ) -> tuple[TrainingState, Checkpointer]:
        assert self._training is not None
        state = EngineState(self.context, callbacks, self._training)
        return state, EngineKeeper(self.trial, self.context, callbacks, state)


def averaged(outputs: list[Any]) -> dict[str, Any]:
    """Averages the metrics of micro batches; tensors stay on their device.

    >>> averaged([{"loss": 1.0}, {"loss": 2.0}])
    {'loss': 1.5}
    """
    parts = [output if isinstance(output, dict) else {"loss": output} for output in outputs]
    result: dict[str, Any] = {}
    for key in dict.fromkeys(key for part in parts for key in part):
        values = [part[key] for part in parts if key in part]
        if all(isinstance(value, torch.Tensor) for value in values):
            result[key] = torch.stack([value.detach().float() for value in values]).mean(dim=0)
        else:
            result[key] = reduce_metric(key, values)
    return result
