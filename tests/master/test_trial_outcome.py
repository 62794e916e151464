"""The outcome of an ended allocation for its trial, rule by rule."""

import pytest

from determined.states import ExitReason as R
from determined.states import TrialState as S
from determined_master.trials.states import AttemptEnd, decide


@pytest.mark.parametrize(
    ("end", "state", "restarts"),
    [
        (AttemptEnd(S.ACTIVE, R.COMPLETED, 0, 5), S.COMPLETED, 0),
        (AttemptEnd(S.ACTIVE, R.PREEMPTED, 0, 5), None, 0),
        (AttemptEnd(S.PAUSED, R.PREEMPTED, 2, 5), None, 2),
        (AttemptEnd(S.PAUSED, R.KILLED, 0, 5), None, 0),
        (AttemptEnd(S.ACTIVE, R.ERRORED, 0, 5), None, 1),
        (AttemptEnd(S.ACTIVE, R.ERRORED, 4, 5), None, 5),
        (AttemptEnd(S.ACTIVE, R.ERRORED, 5, 5), S.ERROR, 5),
        (AttemptEnd(S.ACTIVE, R.ERRORED, 0, 0), S.ERROR, 0),
        (AttemptEnd(S.ACTIVE, R.SYSTEM, 3, 3), None, 3),
        (AttemptEnd(S.ACTIVE, R.AGENT_LOST, 0, 0), None, 0),
        (AttemptEnd(S.ACTIVE, R.IMPOSSIBLE, 0, 5), S.ERROR, 0),
        (AttemptEnd(S.ACTIVE, R.COMPLETED, 0, 5, invalid_hp=True), S.COMPLETED, 0),
        (AttemptEnd(S.STOPPING_CANCELED, R.PREEMPTED, 0, 5), S.CANCELED, 0),
        (AttemptEnd(S.STOPPING_CANCELED, R.ERRORED, 0, 5), S.ERROR, 0),
        (AttemptEnd(S.STOPPING_KILLED, R.KILLED, 0, 5), S.CANCELED, 0),
        (AttemptEnd(S.STOPPING_KILLED, R.ERRORED, 0, 5), S.CANCELED, 0),
        (AttemptEnd(S.STOPPING_COMPLETED, R.COMPLETED, 0, 5), S.COMPLETED, 0),
        (AttemptEnd(S.STOPPING_ERROR, R.KILLED, 0, 5), S.ERROR, 0),
    ],
)
def test_the_end_of_an_attempt_decides_state_and_restarts_of_its_trial(end, state, restarts):
    fate = decide(end)
    assert (fate.state, fate.restarts) == (state, restarts)


def test_system_failures_back_off_and_never_run_out():
    pauses = [decide(AttemptEnd(S.ACTIVE, R.SYSTEM, 0, 0, system_failures=n)).backoff for n in range(12)]
    assert pauses[0] == 0.0
    assert pauses == sorted(pauses)
    assert pauses[-1] == 300.0


def test_the_pause_after_thousands_of_system_failures_is_still_bounded():
    assert decide(AttemptEnd(S.ACTIVE, R.SYSTEM, 0, 0, system_failures=5000)).backoff == 300.0
