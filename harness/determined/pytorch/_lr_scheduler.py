"""A learning rate scheduler and when the trainer steps it."""

from enum import Enum
from typing import Any


class LRScheduler:
    """Wraps a torch scheduler; ``context.wrap_lr_scheduler`` makes it."""

    class StepMode(Enum):
        """When the trainer calls ``step``; ``MANUAL_STEP`` leaves it to the trial."""

        STEP_EVERY_EPOCH = 1
        STEP_EVERY_BATCH = 2
        MANUAL_STEP = 3
        STEP_EVERY_OPTIMIZER_STEP = 4

    def __init__(self, scheduler: Any, step_mode: "LRScheduler.StepMode", frequency: int = 1) -> None:
        if frequency < 1:
            raise ValueError("frequency is at least 1")
        self._scheduler = scheduler
        self.step_mode = step_mode
        self.frequency = frequency

    def step(self, *args: Any, **kwargs: Any) -> None:
        """One step."""
        self._scheduler.step(*args, **kwargs)

    def get_last_lr(self) -> list[Any]:
        """The rates in use."""
        return list(self._scheduler.get_last_lr())

    def state_dict(self) -> dict[str, Any]:
        """The torch scheduler's."""
        return dict(self._scheduler.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The torch scheduler's."""
        self._scheduler.load_state_dict(state_dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_scheduler"], name)

    def after_batch(self, steps: int, *, aggregation: int, epoch_length: int) -> None:
        """Steps if it is time, ``steps`` batches being done."""
        mode, frequency = self.step_mode, self.frequency
        if mode is LRScheduler.StepMode.STEP_EVERY_BATCH:
            due = steps % frequency == 0
        elif mode is LRScheduler.StepMode.STEP_EVERY_OPTIMIZER_STEP:
            due = steps % (aggregation * frequency) == 0
        elif mode is LRScheduler.StepMode.STEP_EVERY_EPOCH:
            due = steps % (epoch_length * frequency) == 0
        else:
            due = False
        if due:
            self._scheduler.step()
