"""What the end of an allocation means for its trial: one pure function, first matching rule."""

from dataclasses import dataclass

from determined.states import ExitReason, TrialState


@dataclass(frozen=True)
class AttemptEnd:
    """How an attempt ended and where its trial stood."""

    state: TrialState
    reason: ExitReason
    restarts: int
    max_restarts: int
    invalid_hp: bool = False
    system_failures: int = 0


@dataclass(frozen=True)
class Fate:
    """``state`` None: the trial stays as it is, and asks for slots again if it is ACTIVE, after ``backoff`` seconds."""

    state: TrialState | None
    reason: ExitReason | None = None
    restarts: int = 0
    system_failures: int = 0
    backoff: float = 0.0


_STOPPED = {
    TrialState.STOPPING_COMPLETED: (TrialState.COMPLETED, ExitReason.SEARCHER_STOPPED),
    TrialState.STOPPING_CANCELED: (TrialState.CANCELED, ExitReason.USER_CANCELED),
    TrialState.STOPPING_KILLED: (TrialState.CANCELED, ExitReason.KILLED),
    TrialState.STOPPING_ERROR: (TrialState.ERROR, ExitReason.ERRORED),
}


def decide(end: AttemptEnd) -> Fate:
    """Semantics 2.2, in its order. System failures do not count as restarts but back off."""
    if end.state in _STOPPED:
        state, reason = _STOPPED[end.state]
        if end.reason is ExitReason.ERRORED and end.state is not TrialState.STOPPING_KILLED:
            state, reason = TrialState.ERROR, ExitReason.ERRORED
        return Fate(state, reason, end.restarts)
    if end.reason is ExitReason.IMPOSSIBLE:
        return Fate(TrialState.ERROR, ExitReason.IMPOSSIBLE, end.restarts)
    if end.invalid_hp:
        return Fate(TrialState.COMPLETED, ExitReason.INVALID_HP, end.restarts)
    if end.reason.is_system_failure:
        failures = end.system_failures + 1
        return Fate(None, None, end.restarts, failures, _backoff(failures))
    if end.reason is ExitReason.ERRORED:
        restarts = end.restarts + 1
        if restarts > end.max_restarts:
            return Fate(TrialState.ERROR, ExitReason.OUT_OF_RESTARTS, end.restarts)
        return Fate(None, None, restarts)
    if end.reason is ExitReason.COMPLETED:
        return Fate(TrialState.COMPLETED, ExitReason.COMPLETED, end.restarts)
    # Preempted, or killed before it was ready: back in the queue if ACTIVE, else it stays PAUSED.
    return Fate(None, None, end.restarts)


def _backoff(failures: int) -> float:
    """Seconds: the first failure is placed again at once, the tenth in a row waits for minutes."""
    return 0.0 if failures <= 1 else min(300.0, 2.0 ** min(failures - 2, 9))
