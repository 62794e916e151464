"""``single``, ``random``, ``grid`` and ``list``: a queue of trials with a limit on concurrent ones."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from determined.searcher.actions import CANCELED, FAILED
from determined_master.searcher.actions import (
    Action,
    CreateMore,
    Event,
    LimitsChanged,
    LotDue,
    SearchContinued,
    Shutdown,
    TrialClosed,
)
from determined_master.searcher.ended_trials import INVALID_HP, all_failed, all_invalid, is_hopeless
from determined_master.searcher.method import TRIALS_A_LOT, Randomness

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
    is_filling: bool = False
    """True between ``CreateMore`` and ``LotDue``: meanwhile it creates nothing, so the order of its trials stays."""
    decides_on_validations: bool = False

    def initial(self) -> list[Action]:
        return self._fill() or [Shutdown()]

    def on_event(self, event: Event) -> list[Action]:
        if isinstance(event, SearchContinued):
            self._continue(event)
        elif self.over:
            return []
        elif isinstance(event, LimitsChanged):
            self.wanted = self.wanted if event.max_trials is None else event.max_trials
            self.concurrent = self.concurrent if event.max_concurrent_trials is None else event.max_concurrent_trials
        elif isinstance(event, LotDue):
            self.is_filling = False
        elif isinstance(event, TrialClosed) and event.request_id not in self.closed:
            self.closed[event.request_id] = event.reason
            if event.reason == INVALID_HP and self.replace_invalid:
                self.invalid += 1
                if is_hopeless(self.invalid, self.wanted) and set(self.closed.values()) == {INVALID_HP}:
                    self.over = True
                    return [Shutdown(canceled=True, reason=all_invalid(self.invalid))]
        else:
            return []
        actions = self._fill()
        if not actions and not self.is_filling and len(self.closed) >= self.created:
            self.over = True
            return [self._shutdown()]
        return actions

    def _continue(self, event: SearchContinued) -> None:
        self.over, self.is_filling = False, False
        self.created = len(event.known)
        for request_id in event.resumed:
            if self.closed.pop(request_id, "") == INVALID_HP and self.replace_invalid:
                self.invalid -= 1

    def _shutdown(self) -> Shutdown:
        reasons = list(self.closed.values())
        failed = all(reason in FAILED for reason in reasons)
        if reasons and set(reasons) == {INVALID_HP}:
            return Shutdown(canceled=True, reason=all_invalid(len(reasons)))
        canceled = all(reason in CANCELED for reason in reasons)
        return Shutdown(failed=failed, canceled=canceled, reason=all_failed(len(reasons)) if failed else "")

    def progress(self, live_progress: float) -> float:
        if self.wanted <= 0:
            return 1.0
        done = sum(reason != INVALID_HP for reason in self.closed.values())
        return min(1.0, (done + live_progress) / self.wanted)

    def snapshot(self) -> dict[str, Any]:
        return {
            "wanted": self.wanted,
            "concurrent": self.concurrent,
            "created": self.created,
            "invalid": self.invalid,
            "closed": dict(self.closed),
            "over": self.over,
            "filling": self.is_filling,
            "rng": self.randomness.state(),
        }

    def restore(self, snapshot: dict[str, Any]) -> None:
        # Snapshots of earlier versions have no limits, which could not change then.
        self.wanted = snapshot.get("wanted", self.wanted)
        self.concurrent = snapshot.get("concurrent", self.concurrent)
        self.created = snapshot["created"]
        self.invalid = snapshot["invalid"]
        self.closed = dict(snapshot["closed"])
        self.over = snapshot["over"]
        self.is_filling = snapshot.get("filling", False)
        self.randomness = Randomness.restored(snapshot["rng"])

    def _fill(self) -> list[Action]:
        """Creates trials until as many train as may at once, or as are wanted, and at most a lot."""
        actions: list[Action] = []
        while not self.is_filling and self.created - self.invalid < self.wanted and self._has_room():
            if len(actions) == TRIALS_A_LOT:
                self.is_filling = True
                return [*actions, CreateMore()]
            point = self.draw(self)
            if point is None:
                break
            number, total = self.created + 1, self.wanted + self.invalid
            actions.append(self.randomness.create(point, f"created: trial {number} of {total}" if total > 1 else ""))
            self.created += 1
        return actions

    def _has_room(self) -> bool:
        return not self.concurrent or self.created - len(self.closed) < self.concurrent
