"""How often something is done: every so many epochs, steps or seconds, whichever comes first."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Frequency:
    """Counts steps, epochs and seconds since the action was last due.

    A limit that is None never makes the action due. All three counts begin again whenever it is due. The seconds of
    a run that was paused continue where they were: time in which nothing ran does not count.

    >>> every_other = Frequency(steps=2)
    >>> [every_other.is_due(), every_other.is_due(), every_other.is_due()]
    [False, True, False]
    """

    epochs: int | None = None
    steps: int | None = None
    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    _epochs: int = 0
    _steps: int = 0
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        self._since = self.clock()

    def is_due(self, *, ends_epoch: bool = False) -> bool:
        """Counts one step and returns True if the action is due after it."""
        self._steps += 1
        self._epochs += ends_epoch
        due = (
            (self.steps is not None and self._steps >= self.steps)
            or (self.epochs is not None and ends_epoch and self._epochs >= self.epochs)
            or (self.seconds is not None and self.clock() - self._since >= self.seconds)
        )
        if due:
            self._epochs = self._steps = 0
            self._since = self.clock()
        return due

    def state_dict(self) -> dict[str, float]:
        """Returns the counts and the seconds since the action was last due."""
        return {"epochs": self._epochs, "steps": self._steps, "seconds": self.clock() - self._since}

    def load_state_dict(self, state: dict[str, float]) -> None:
        """Continues from the counts that :meth:`state_dict` returned."""
        self._epochs, self._steps = int(state["epochs"]), int(state["steps"])
        self._since = self.clock() - float(state["seconds"])
