"""The displayed state of an experiment: never PAUSED while it holds slots, and no verb that would be refused."""

import keyword
import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.states import AllocationState, ExitReason, ExperimentState, TrialState
from determined_master.api.queries.experiment_status import (
    eta_seconds,
    finer,
    leaving,
    run_times,
    running_seconds,
    text_of,
    trial_status,
    verbs_of,
)
from determined_master.db.models import AllocationRow, ExperimentRow, TrialRow
from determined_master.experiments.states import ALLOWED
from determined_master.trials.repository import AttemptTimes

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LIVE = [state for state in AllocationState if state.is_live]


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def allocation(state: AllocationState = AllocationState.RUNNING, **values) -> AllocationRow:
    return AllocationRow(id="1.a.1", task_id="1.a", state=state, created_at=NOW, waiting="", **values)


def experiment(state: ExperimentState, *, archived: bool = False) -> ExperimentRow:
    return ExperimentRow(id=1, state=state, archived=archived, start_time=NOW)


def trial(state: TrialState, **values) -> TrialRow:
    return TrialRow(
        id=3, task_id="1.a", state=state, start_time=NOW, restarts=0, progress=0, steps_completed=0, **values
    )


@given(st.sampled_from([s for s in ExperimentState if not s.is_final]), st.lists(st.sampled_from(LIVE), max_size=4))
def test_an_experiment_that_holds_slots_is_never_shown_as_paused(state, live):
    shown = finer(state, [allocation(allocation_state) for allocation_state in live])
    if live:
        assert shown != "STATE_PAUSED"
    if state is ExperimentState.PAUSED:
        assert shown == ("STATE_PAUSING" if live else "STATE_PAUSED")
    assert shown != "STATE_ACTIVE"


@pytest.mark.parametrize(
    ("live", "shown"),
    [
        ([], "STATE_QUEUED"),
        ([AllocationState.PENDING], "STATE_QUEUED"),
        ([AllocationState.PENDING, AllocationState.PULLING], "STATE_PULLING"),
        ([AllocationState.PULLING, AllocationState.ASSIGNED], "STATE_STARTING"),
        ([AllocationState.STARTING, AllocationState.RUNNING], "STATE_RUNNING"),
        ([AllocationState.TERMINATING], "STATE_RUNNING"),
    ],
)
def test_an_active_experiment_has_the_state_of_its_furthest_attempt(live, shown):
    assert finer(ExperimentState.ACTIVE, [allocation(allocation_state) for allocation_state in live]) == shown


@pytest.mark.parametrize(
    ("live", "text"),
    [
        (allocation(ready_at=NOW, preempt_requested_at=NOW), "pausing: waiting for checkpoint"),
        (allocation(ready_at=NOW, preempt_requested_at=NOW, preempt_acked_at=NOW), "pausing: saved, exiting"),
        (allocation(AllocationState.TERMINATING, kill_requested_at=NOW), "pausing: waiting for its processes to end"),
    ],
)
def test_the_text_of_a_pausing_experiment_names_what_it_waits_for(live, text):
    assert text_of(experiment(ExperimentState.PAUSED), [], [live], 1) == text
    assert trial_status(trial(TrialState.PAUSED), live, NOW, NOW).text == text


def test_waiting_backoff_and_progress_are_shown_in_the_status_text():
    waits = allocation(AllocationState.PENDING)
    waits.waiting = "needs 2 slots, 1 is free"
    one = trial_status(trial(TrialState.ACTIVE), waits, None, NOW)
    assert one.text == "queued: needs 2 slots, 1 is free"
    assert text_of(experiment(ExperimentState.ACTIVE), [one], [waits], 1) == one.text
    backing = trial_status(trial(TrialState.ACTIVE, retry_at=at(8), system_failures=4), None, None, NOW)
    assert backing.waiting == "backing off after 4 system failures in a row; again in 8 s"
    assert text_of(experiment(ExperimentState.STOPPING_KILLED), [], [], 1) == "killing"
    assert leaving([]) == "waiting for its processes to end"
    running = trial_status(trial(TrialState.ACTIVE), allocation(ready_at=at(3)), None, at(9))
    assert (running.text, running.since) == ("running", at(3))
    assert text_of(experiment(ExperimentState.ACTIVE), [running, one], [allocation()], 2) == "running: 1 of 2 trials"


def test_the_status_text_of_a_failed_experiment_names_the_failure_once():
    def text(**values) -> str:
        failed = trial(TrialState.ERROR, end_time=NOW, **values)
        return text_of(experiment(ExperimentState.ERROR), [trial_status(failed, None, NOW, NOW)], [], 1)

    assert text(exit_reason=ExitReason.ERRORED) == "failed: trial 3"
    assert text(exit_reason=ExitReason.IMPOSSIBLE) == "failed: trial 3: cannot be scheduled"
    cause = AllocationRow(id="1.a.1", task_id="1.a", run_id=1, failure="out of memory", created_at=NOW)
    failed = trial(TrialState.ERROR, end_time=NOW, exit_reason=ExitReason.ERRORED)
    status = trial_status(failed, None, NOW, NOW, cause)
    assert status.text == "failed: out of memory"
    assert text_of(experiment(ExperimentState.ERROR), [status], [], 1) == "failed: trial 3: out of memory"


@given(st.sampled_from(list(ExperimentState)), st.booleans())
def test_refusal_reasons_name_states_in_words(state, archived):
    _, why = verbs_of(experiment(state, archived=archived))
    for reason in filter(None, why.model_dump().values()):
        assert not re.search("[A-Z]{2}", reason), reason


@given(st.sampled_from(list(ExperimentState)), st.booleans())
def test_a_verb_is_offered_where_the_table_of_states_allows_it(state, archived):
    can, why = verbs_of(experiment(state, archived=archived and state.is_terminal))
    allowed = ALLOWED[state]
    assert can.pause == (ExperimentState.PAUSED in allowed and not state.is_terminal)
    assert can.activate == (ExperimentState.ACTIVE in allowed)
    assert can.cancel == (ExperimentState.STOPPING_CANCELED in allowed)
    assert can.kill == (ExperimentState.STOPPING_KILLED in allowed)
    assert can.delete == (ExperimentState.DELETING in allowed)
    for verb, reason in why.model_dump().items():
        name = f"{verb}_" if keyword.iskeyword(verb) else verb
        assert (reason is None) == getattr(can, name), (verb, reason)
    assert not (can.archive and can.unarchive)


def test_an_estimate_uses_only_the_time_that_ran():
    spans = [(at(0), at(100)), (at(1000), None)]
    assert eta_seconds(0.5, spans, at(1100)) == pytest.approx(200)
    assert eta_seconds(0.0, spans, at(1100)) is None
    assert eta_seconds(1.0, spans, at(1100)) is None
    assert eta_seconds(0.5, [], at(1100)) is None


TIMES = st.integers(0, 50)


@given(st.lists(st.tuples(TIMES, st.none() | TIMES)), st.integers(0, 60))
def test_seconds_that_ran_count_once(spans, now):
    seconds_that_ran = running_seconds([(at(a), None if b is None else at(b)) for a, b in spans], at(now))
    seconds = {s for a, b in spans for s in range(a, now if b is None else b)}
    assert seconds_that_ran == len(seconds)


@given(st.lists(st.tuples(TIMES, st.none() | TIMES, st.none() | TIMES)), TIMES)
def test_durations_are_never_negative_even_where_the_masters_clock_was_set_back(times, now):
    attempts = [AttemptTimes(at(a), None if b is None else at(b), None if c is None else at(c)) for a, b, c in times]
    times_of_run = run_times(attempts, at(now))
    assert times_of_run.waited_seconds >= 0
    assert times_of_run.ran_seconds >= 0


def test_a_pause_counts_neither_as_waiting_nor_as_running_and_parallel_trials_count_once():
    attempts = [
        AttemptTimes(at(0), at(100), at(200)),  # waits 100, runs 100
        AttemptTimes(at(500), at(520), None),  # after a pause of 300: waits 20, runs 80
        AttemptTimes(at(510), at(540), at(590)),  # at the same time as the second one
        AttemptTimes(at(550), None, None),  # waits while others run
    ]
    times = run_times(attempts, at(600))
    assert (times.waited_seconds, times.ran_seconds) == (120, 180)
    assert run_times([], at(600)).waited_seconds == 0
