"""Polls for preemption in every step: reads a flag with one worker, and exchanges it occasionally with several.

A trial's request to end the training is exchanged with it.
"""

import time
from collections.abc import Callable

from determined import core

SECONDS_BETWEEN = 0.1
_MAX_STEPS = 1000


class PreemptPoll:
    """Asks for preemption at the same points on all workers, with the same answer.

    ``stop_requested`` is equal on all workers: True if ``asks_stop`` was True on one of them at the last exchange. With
    one worker it stays False: the loop asks the trial itself.
    """

    def __init__(self, core_context: core.Context, asks_stop: Callable[[], bool]) -> None:
        self._preempt = core_context.preempt
        self._distributed = core_context.distributed
        self._asks_stop = asks_stop
        self.stop_requested = False
        self._alone = core_context.distributed.size == 1
        self._left = 0
        self._every = 1
        self._last = time.monotonic()

    def __call__(self) -> bool:
        """Returns True if the trial must leave now."""
        if self._alone:
            return self._preempt.should_preempt(auto_ack=False)
        if self._left > 0:
            self._left -= 1
            return False
        answer = self._preempt.should_preempt(auto_ack=False) if self._distributed.rank == 0 else False
        # the chief's clock determines after how many steps all ask again, so that few steps need an exchange
        answers = self._distributed.allgather((answer, self._pace(), self._asks_stop()))
        answer, self._every, _ = answers[0]
        self.stop_requested = any(asks_stop for *_, asks_stop in answers)
        self._left = self._every - 1
        return bool(answer)

    def acknowledge(self) -> None:
        """Tells the master that this attempt exits unfinished."""
        if self._distributed.rank == 0:
            self._preempt.acknowledge_preemption_signal()

    def _pace(self) -> int:
        now = time.monotonic()
        step = (now - self._last) / self._every
        self._last = now
        return max(1, min(_MAX_STEPS, int(SECONDS_BETWEEN / max(step, 1e-6)), self._every * 2))
