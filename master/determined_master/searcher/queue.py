"""Single, random and grid search: a queue of trials with a limit on concurrent ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from determined_master.searcher.actions import Action, Event, Shutdown, TrialClosed
from determined_master.searcher.method import Randomness

Draw = Callable[["QueueSearch"], dict[str, Any] | None]
"""Returns the next point, or None if there is none left."""


@dataclass
class QueueSearch:
    """Creates the next trial as each one closes. ``replace_invalid``: a trial with invalid hyperparameters is not
    counted but replaced (random search)."""

    draw: Draw
    wanted: int
    concurrent: int
    randomness: Randomness
    replace_invalid: bool = False
    created: int = 0
    invalid: int = 0
    closed: dict[str, str] = field(default_factory=dict)
    over: bool = False

    def initial(self) -> list[Action]:
        count = min(self.wanted, self.concurrent) if self.concurrent else self.wanted
        actions = self._next(count)
        return actions or [Shutdown()]

    def on_event(self, event: Event) -> list[Action]:
        if not isinstance(event, TrialClosed) or event.request_id in self.closed or self.over:
            return []
        self.closed[event.request_id] = event.reason
        if event.reason == "invalid_hp" and self.replace_invalid:
            self.invalid += 1
        actions = self._next(1)
        if not actions and len(self.closed) >= self.created:
            self.over = True
            reasons = list(self.closed.values())
            failed = [r for r in reasons if r in FAILED]
            canceled = [r for r in reasons if r in CANCELED]
            return [Shutdown(failed=len(failed) == len(reasons), canceled=len(canceled) == len(reasons))]
        return actions

    def progress(self, trial_progress: Mapping[str, float]) -> float:
        if self.wanted <= 0:
            return 1.0
        done = [1.0 for reason in self.closed.values() if reason != "invalid_hp" or not self.replace_invalid]
        live = [p for request_id, p in trial_progress.items() if request_id not in self.closed]
        return min(1.0, (sum(done) + sum(live)) / self.wanted)

    def snapshot(self) -> dict[str, Any]:
        return {
            "created": self.created,
            "invalid": self.invalid,
            "closed": dict(self.closed),
            "over": self.over,
            "rng": self.randomness.state(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        self.created = snapshot["created"]
        self.invalid = snapshot["invalid"]
        self.closed = dict(snapshot["closed"])
        self.over = snapshot["over"]
        self.randomness = Randomness.restored(snapshot["rng"])

    def _next(self, count: int) -> list[Action]:
        actions: list[Action] = []
        while len(actions) < count and self.created - self.invalid < self.wanted:
            point = self.draw(self)
            if point is None:
                break
            actions.append(self.randomness.create(point))
            self.created += 1
        return actions


FAILED = frozenset({"errored", "out_of_restarts", "impossible", "system", "agent_lost"})
CANCELED = frozenset({"user_canceled", "killed"})
