"""Timeline of a trial: state changes, attempts and checkpoints, as of any moment."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from determined.states import ExitReason, TrialState


@dataclass(frozen=True)
class Move:
    time: datetime
    start: TrialState
    to: TrialState
    actor: str


@dataclass(frozen=True)
class Attempt:
    """One attempt. ``leaving``: when it was first asked to end."""

    run_id: int
    created: datetime
    placed: datetime | None = None
    ready: datetime | None = None
    leaving: datetime | None = None
    ended: datetime | None = None
    reason: ExitReason | None = None
    message: str = ""
    failure: str | None = None
    waiting: str = ""


@dataclass(frozen=True)
class SavedCheckpoint:
    time: datetime
    steps: int
    run_id: int
    size: int = 0


@dataclass(frozen=True)
class History:
    """``moves`` and ``saved`` are ordered by time, ``tries`` by run."""

    trial_id: int
    created: datetime
    state: TrialState
    """Current state."""
    ended: datetime | None = None
    reason: ExitReason | None = None
    retry_at: datetime | None = None
    moves: Sequence[Move] = ()
    tries: Sequence[Attempt] = ()
    saved: Sequence[SavedCheckpoint] = ()

    @cached_property
    def _standing(self) -> list[tuple[datetime, TrialState]]:
        """Returns the start of each state, by time."""
        first = self.moves[0].start if self.moves else self.state
        found = [(self.created, first), *((move.time, move.to) for move in self.moves)]
        if self.state.is_terminal and self.ended is not None:
            found = [(time, state) for time, state in found if time < self.ended and not state.is_terminal]
            found.append((self._over(found, self.ended), self.state))
        return sorted(found, key=lambda each: each[0])

    def _over(self, before: Sequence[tuple[datetime, TrialState]], ended: datetime) -> datetime:
        """Returns the end of the last attempt if only the master's own processing lies between that and the trial's
        end."""
        left = max((each.ended for each in self.tries if each.ended is not None), default=ended)
        moved = max((time for time, _ in before), default=self.created)
        alive = any(each.ended is None or each.created > left for each in self.tries)
        return left if moved <= left <= ended and not alive else ended

    def state_at(self, time: datetime) -> TrialState:
        place = bisect_right(self._standing, time, key=lambda each: each[0])
        return self._standing[max(0, place - 1)][1]

    @cached_property
    def _tries_by_time(self) -> list[Attempt]:
        return sorted(self.tries, key=lambda each: (each.created, each.run_id))

    def try_at(self, time: datetime) -> tuple[Attempt | None, Attempt | None]:
        """Returns the newest attempt by then, and the one after it."""
        place = bisect_right(self._tries_by_time, time, key=lambda each: each.created)
        found = self._tries_by_time
        return (found[place - 1] if place else None), (found[place] if place < len(found) else None)

    def steps_at(self, time: datetime) -> int:
        """Returns the steps from which an attempt that begins then resumes."""
        return max((saved.steps for saved in self.saved if saved.time <= time), default=0)

    @property
    def moments(self) -> list[datetime]:
        """Returns the times at which something may have changed."""
        found = [time for time, _ in self._standing]
        for each in self.tries:
            found += [t for t in (each.created, each.placed, each.ready, each.leaving, each.ended) if t is not None]
        return found
