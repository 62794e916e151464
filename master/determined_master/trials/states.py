"""States of a trial: allowed transitions (docs/architecture/states.md), and the outcome of an attempt's end."""

from dataclasses import dataclass

from determined.states import ExitReason, ExperimentState
from determined.states import TrialState as S
from determined_master.states.transitions import Table
from determined_master.tasks.states import backoff_seconds

_STOPPING = frozenset({S.STOPPING_COMPLETED, S.STOPPING_CANCELED, S.STOPPING_KILLED, S.STOPPING_ERROR})
_TERMINAL = frozenset({S.COMPLETED, S.CANCELED, S.ERROR})

ALLOWED: Table[S] = {
    S.ACTIVE: frozenset({S.PAUSED}) | _STOPPING | _TERMINAL,
    S.PAUSED: frozenset({S.ACTIVE}) | _STOPPING | _TERMINAL,
    S.STOPPING_COMPLETED: frozenset({S.COMPLETED, S.STOPPING_CANCELED, S.STOPPING_KILLED, S.STOPPING_ERROR, S.ERROR}),
    S.STOPPING_CANCELED: frozenset({S.CANCELED, S.STOPPING_KILLED, S.STOPPING_ERROR, S.ERROR}),
    S.STOPPING_KILLED: frozenset({S.CANCELED, S.STOPPING_ERROR, S.ERROR}),
    S.STOPPING_ERROR: frozenset({S.ERROR}),
    S.COMPLETED: frozenset({S.ACTIVE}),
    S.CANCELED: frozenset({S.ACTIVE}),
    S.ERROR: frozenset({S.ACTIVE}),
}

FIRST = S.ACTIVE


_FOLLOWING = {
    ExperimentState.ACTIVE: S.ACTIVE,
    ExperimentState.PAUSED: S.PAUSED,
    ExperimentState.STOPPING_CANCELED: S.STOPPING_CANCELED,
    ExperimentState.STOPPING_KILLED: S.STOPPING_KILLED,
    ExperimentState.STOPPING_ERROR: S.STOPPING_ERROR,
}


def following_state(experiment: ExperimentState) -> S | None:
    """Returns the state into which an experiment's state moves its trials; None if it leaves them as they are."""
    return _FOLLOWING.get(experiment)


def starts_of(to: S) -> list[S]:
    """Returns the states of trials that follow their experiment to ``to``."""
    if to in (S.ACTIVE, S.PAUSED):
        return [S.PAUSED if to is S.ACTIVE else S.ACTIVE]
    return [state for state in S if may_stop(state, to)]


def may_stop(state: S, to: S) -> bool:
    """Returns False for a trial that has ended, or is stopping in a way that ``to`` does not override."""
    is_weaker = state.is_stopping and to is S.STOPPING_CANCELED
    return to in ALLOWED[state] and not state.is_terminal and not is_weaker


@dataclass(frozen=True)
class AttemptEnd:
    """How an attempt ended, and the trial's state and counters at that time."""

    state: S
    reason: ExitReason
    restarts: int
    max_restarts: int
    invalid_hp: bool = False
    system_failures: int = 0
    cancels_retries: bool = False
    """True if a log policy forbids a restart after a failure."""
    limits_without_checkpoint: int = 0
    """Number of attempts in a row, with this one, that had an agent's whole time, ended with it and saved nothing; 0 if
    this one is none of them."""
    has_agent_left: bool = True
    """False if log policies exclude so many agents that the rest of the pool can never hold another attempt."""


@dataclass(frozen=True)
class TrialOutcome:
    """Outcome for the trial. If ``state`` is None, the trial keeps its state; an ACTIVE one requests slots again after
    ``backoff`` seconds."""

    state: S | None
    reason: ExitReason | None = None
    restarts: int = 0
    system_failures: int = 0
    backoff: float = 0.0


MAX_LIMITS_WITHOUT_CHECKPOINT = 2

_STOPPED = {
    S.STOPPING_COMPLETED: (S.COMPLETED, ExitReason.SEARCHER_STOPPED),
    S.STOPPING_CANCELED: (S.CANCELED, ExitReason.USER_CANCELED),
    S.STOPPING_KILLED: (S.CANCELED, ExitReason.KILLED),
    S.STOPPING_ERROR: (S.ERROR, ExitReason.ERRORED),
}


def decide(end: AttemptEnd) -> TrialOutcome:
    """Returns the outcome by the first rule that matches. System failures back off and do not count as restarts."""
    if end.state in _STOPPED:
        state, reason = _STOPPED[end.state]
        if end.reason is ExitReason.ERRORED and end.state is not S.STOPPING_KILLED:
            state, reason = S.ERROR, ExitReason.ERRORED
        return TrialOutcome(state, reason, end.restarts)
    if end.reason is ExitReason.IMPOSSIBLE:
        return TrialOutcome(S.ERROR, ExitReason.IMPOSSIBLE, end.restarts)
    if end.invalid_hp:
        return TrialOutcome(S.COMPLETED, ExitReason.INVALID_HP, end.restarts)
    is_active = end.state is S.ACTIVE
    if is_active and end.limits_without_checkpoint >= MAX_LIMITS_WITHOUT_CHECKPOINT:
        return TrialOutcome(S.ERROR, ExitReason.NO_CHECKPOINT, end.restarts)
    if end.reason.is_system_failure:
        failures = end.system_failures + 1
        return TrialOutcome(None, None, end.restarts, failures, backoff_seconds(failures))
    if end.reason is ExitReason.ERRORED:
        if end.cancels_retries:
            return TrialOutcome(S.ERROR, ExitReason.RETRIES_CANCELED, end.restarts)
        restarts = end.restarts + 1
        if restarts > end.max_restarts:
            return TrialOutcome(S.ERROR, ExitReason.OUT_OF_RESTARTS, end.restarts)
        if not end.has_agent_left:
            return TrialOutcome(S.ERROR, ExitReason.IMPOSSIBLE, restarts)
        return TrialOutcome(None, None, restarts)
    if end.reason is ExitReason.COMPLETED:
        return TrialOutcome(S.COMPLETED, ExitReason.COMPLETED, end.restarts)
    # Preempted, or killed before it was ready: back in the queue if ACTIVE, else it stays PAUSED.
    return TrialOutcome(None, None, end.restarts)
