"""The clock of the step figure. It is called at each step and times the steps from WARM to the last."""

import time
from pathlib import Path

WARM = 300


class Clock:
    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.count = 0
        self._start = self.seconds = 0.0

    def tick(self) -> None:
        """Counts a step. Call it at the beginning of each step."""
        self.count += 1
        if self.count == WARM:
            self._start = time.perf_counter()
        elif self.count == self.steps:
            self.seconds = time.perf_counter() - self._start

    def write(self, path: str) -> None:
        """Writes the seconds per step."""
        Path(path).write_text(str(self.seconds / (self.steps - WARM)), encoding="utf-8")
