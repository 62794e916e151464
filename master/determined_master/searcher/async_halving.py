"""``async_halving``: one bracket of asynchronous successive halving, its rungs, and which of its trials train on.

``adaptive_asha`` has several such brackets.

Each rung is a sorted list of results. A result is a metric, smaller is better, and the number of its trial in the
bracket, which breaks ties: a rank depends on the results that a rung has and not on the order in which they came.
"""

import bisect
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from determined.config.search_plan import Bracket as Plan
from determined_master.searcher.actions import RungResult

Entry = tuple[float, int]
WORST = sys.float_info.max
"""The result of a trial that failed, in every rung that it would have reached next."""

RUNNING, STOPPED, DONE, FAILED, CANCELED, INVALID = "rsdfci"
"""State of a trial: in training; stopped but not yet ended; and the ways in which it ended."""
_LIVE = (RUNNING, STOPPED)
_STATES = RUNNING + STOPPED + DONE + FAILED + CANCELED + INVALID


@dataclass
class Bracket:
    """The state of a bracket. Trials are numbered in the order of their creation."""

    plan: Plan
    divisor: float
    number: int
    max_trials: int = 0
    concurrent: int = 0
    rungs: list[list[Entry]] = field(default_factory=list)
    next_rung: list[int] = field(default_factory=list)
    """Trial → index of the rung that it has not reached yet."""
    states: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_STATES, 0))
    """Number of trials in each state."""

    def __post_init__(self) -> None:
        self.max_trials, self.concurrent = self.plan.trials, self.plan.concurrent
        self.rungs = [[] for _ in self.plan.units]

    @property
    def is_over(self) -> bool:
        """Returns True once every wanted trial was created and has ended."""
        return not any(self.counts[state] for state in _LIVE) and not self.wants_trial

    @property
    def wants_trial(self) -> bool:
        valid = len(self.states) - self.counts[INVALID]
        return valid < self.max_trials and self.counts[RUNNING] < self.concurrent

    @property
    def progress(self) -> float:
        first = len(self.rungs[0])
        share = first / (1.2 * self.max_trials)
        if first >= self.max_trials:
            ended = len(self.states) - self.counts[RUNNING] - self.counts[STOPPED] - self.counts[INVALID]
            share = max(share, ended / self.max_trials)
        return min(1.0, share)

    def add_trial(self) -> int:
        """Returns the number of a new trial."""
        self.states.append(RUNNING)
        self.counts[RUNNING] += 1
        self.next_rung.append(0)
        return len(self.states) - 1

    def report(self, trial: int, time: float, metric: float) -> Iterator[tuple[RungResult, bool]]:
        """Yields the trial's place at each rung that it has reached now, and whether it trains on."""
        units, last = self.plan.units, len(self.rungs) - 1
        for index in range(self.next_rung[trial], len(self.rungs)):
            if time < units[index]:
                return
            rung = self.rungs[index]
            entry = (metric, trial)
            rank = bisect.bisect_left(rung, entry)
            rung.insert(rank, entry)
            self.next_rung[trial] = index + 1
            kept = max(1, math.floor(len(rung) / self.divisor))
            trains_on = index < last and rank < kept
            result = RungResult(self.number, index + 1, units[index], time, metric, rank + 1, len(rung), kept)
            if not trains_on:
                self.move(trial, STOPPED)
            yield result, trains_on
            if not trains_on:
                return

    def close(self, trial: int, state: str) -> None:
        """Records the end of a trial. One that failed takes the last place of its next rung, and one whose
        hyperparameters are invalid no place at all."""
        was_running = self.states[trial] == RUNNING
        if state == INVALID:
            for index in range(self.next_rung[trial]):
                self.rungs[index] = [entry for entry in self.rungs[index] if entry[1] != trial]
        elif was_running and state in (FAILED, CANCELED):
            self.fail(trial)
        self.move(trial, state)

    def fail(self, trial: int) -> None:
        """Gives a trial the last place of its next rung, and stops it."""
        index = self.next_rung[trial]
        if index < len(self.rungs):
            bisect.insort(self.rungs[index], (WORST, trial))
            self.next_rung[trial] = index + 1
        self.move(trial, STOPPED)

    def forget_after(self, count: int) -> None:
        """Forgets all but the first ``count`` trials: the others were never created."""
        for trial in range(count, len(self.states)):
            self.counts[self.states[trial]] -= 1
        del self.states[count:], self.next_rung[count:]

    def resume(self, trial: int) -> bool:
        """Lets a trial train on that had failed or was canceled, and takes its last place at a rung from it. Returns
        False for one that its results had stopped before: it stays stopped."""
        if self.states[trial] == RUNNING:
            return True
        index = self.next_rung[trial] - 1
        has_failed = index >= 0 and (WORST, trial) in self.rungs[index]
        if has_failed:
            self.rungs[index].remove((WORST, trial))
            self.next_rung[trial] = index
        self.move(trial, RUNNING if has_failed else STOPPED)
        return has_failed

    def move(self, trial: int, state: str) -> None:
        self.counts[self.states[trial]] -= 1
        self.counts[state] += 1
        self.states[trial] = state

    def snapshot(self) -> dict[str, Any]:
        return {
            "units": list(self.plan.units),
            "max_trials": self.max_trials,
            "concurrent": self.concurrent,
            "rungs": [list(rung) for rung in self.rungs],
            "next_rung": list(self.next_rung),
            "states": "".join(self.states),
        }

    @classmethod
    def restored(cls, snapshot: dict[str, Any], divisor: float, number: int) -> "Bracket":
        plan = Plan(tuple(snapshot["units"]), snapshot["max_trials"], snapshot["concurrent"])
        bracket = cls(plan, divisor, number)
        bracket.rungs = [[(metric, trial) for metric, trial in rung] for rung in snapshot["rungs"]]
        bracket.next_rung = list(snapshot["next_rung"])
        bracket.states = list(snapshot["states"])
        bracket.counts = {state: bracket.states.count(state) for state in bracket.counts}
        return bracket
