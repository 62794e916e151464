"""A learning rate scheduler and when the trainer steps it."""

from enum import Enum
from typing import Any


class LRScheduler:
    """A learning rate scheduler with the rule by which the trainer steps it; ``context.wrap_lr_scheduler`` makes it.

    Other attributes are those of the wrapped scheduler.

    Args:
        scheduler: a scheduler of torch, or an object with the same methods.
        step_mode: selects when the trainer calls ``step``.
        frequency: number of batches, epochs or optimizer steps per call of ``step``.

    Raises:
        ValueError: ``frequency`` is below 1.
    """

    class StepMode(Enum):
        """Selects when the trainer calls ``step``. With ``MANUAL_STEP`` the trial calls it."""

        STEP_EVERY_EPOCH = 1
        STEP_EVERY_BATCH = 2
        MANUAL_STEP = 3
        STEP_EVERY_OPTIMIZER_STEP = 4

    def __init__(self, scheduler: Any, step_mode: "LRScheduler.StepMode", frequency: int = 1) -> None:  # noqa: ANN401  # attributes of any scheduler
        if frequency < 1:
            raise ValueError("frequency must be at least 1")
        self._scheduler = scheduler
        self.step_mode = step_mode
        self.frequency = frequency

    def step(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401  # attributes of any scheduler
        """Steps the wrapped scheduler; all arguments are passed to it."""
        self._scheduler.step(*args, **kwargs)

    def get_last_lr(self) -> list[Any]:
        """Returns the current learning rate of each parameter group."""
        return list(self._scheduler.get_last_lr())

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of the wrapped scheduler."""
        return dict(self._scheduler.state_dict())

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores the state of the wrapped scheduler.

        Args:
            state_dict: what :meth:`state_dict` returned.
        """
        self._scheduler.load_state_dict(state_dict)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # attributes of any scheduler
        if name == "_scheduler":  # not set yet: copy and pickle ask before they restore the attributes
            raise AttributeError(name)
        return getattr(self._scheduler, name)

    def after_batch(self, steps: int, *, aggregation: int, epoch_length: int) -> None:
        """Steps the scheduler if it is due; the trainer calls this after each batch.

        Args:
            steps: number of completed batches.
            aggregation: number of batches per optimizer step.
            epoch_length: number of batches per epoch.
        """
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
