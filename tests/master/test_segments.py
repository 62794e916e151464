"""The timeline of a trial: common cases, and properties of any history."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from determined.states import ExitReason, TrialState
from determined_master.api.queries.timeline_marks import moments_of, on_curve
from determined_master.api.queries.timeline_segments import segments_of
from determined_master.trials.timeline import Attempt, History, Move, SavedCheckpoint

A, P = TrialState.ACTIVE, TrialState.PAUSED


def at(seconds: float) -> datetime:
    return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def displayed(history: History, now: float = 100) -> list[tuple[int, str, float]]:
    return [(s.run_id, s.kind, (s.from_ - at(0)).total_seconds()) for s in segments_of(history, at(now))]


def test_a_pause_is_a_segment_between_two_attempts():
    history = History(
        7,
        at(0),
        TrialState.COMPLETED,
        ended=at(70),
        reason=ExitReason.COMPLETED,
        moves=[Move(at(20), A, P, "ann"), Move(at(40), P, A, "bob"), Move(at(70.1), A, TrialState.COMPLETED, "system")],
        tries=[
            Attempt(1, at(1), at(5), at(10), at(20.1), at(25), ExitReason.PREEMPTED),
            Attempt(2, at(41), at(42), at(45), None, at(70), ExitReason.COMPLETED),
        ],
        saved=[SavedCheckpoint(at(24), 200, 1), SavedCheckpoint(at(60), 500, 2)],
    )
    assert displayed(history) == [
        (0, "queued", 0),
        (1, "queued", 1),
        (1, "starting", 5),
        (1, "running", 10),
        (1, "pausing", 20),
        (1, "paused", 25),
        (1, "queued", 40),
        (2, "queued", 41),
        (2, "starting", 42),
        (2, "running", 45),
        (2, "ended", 70),
    ]
    assert segments_of(history, at(100))[4].reason == "waiting for checkpoint"
    assert segments_of(history, at(100))[-1].to is None
    marks = [(m.kind, m.steps, m.run_id, m.text) for m in on_curve(moments_of(history))]
    assert marks == [
        ("pause", 200, 1, "paused by ann"),
        ("checkpoint", 200, 1, "checkpoint at step 200"),
        ("checkpoint", 500, 2, "checkpoint at step 500"),
    ]
    assert [m.kind for m in moments_of(history)][2:4] == ["checkpoint", "activate"]
    assert [m.until for m in on_curve(moments_of(history))] == [at(40), None, None]


def test_a_pause_is_over_when_the_trial_goes_on_or_ends():
    stopped = Move(at(40), P, TrialState.CANCELED, "ann")
    paused = History(
        7, at(0), P, moves=[Move(at(20), A, P, "ann")], tries=[Attempt(1, at(1), at(5), at(10), at(20), at(25))]
    )
    ended = replace(paused, state=TrialState.CANCELED, ended=at(41), moves=[*paused.moves, stopped])
    resumed = replace(paused, moves=[Move(at(t), *((A, P) if t % 20 else (P, A)), "ann") for t in (30, 40, 50)])
    assert [[m.until for m in on_curve(moments_of(history))] for history in (paused, ended, resumed)] == [
        [None],
        [at(41)],
        [at(40), None],
    ]


def test_failed_attempts_are_followed_by_backoff_segments():
    history = History(
        7,
        at(0),
        A,
        retry_at=at(30),
        tries=[
            Attempt(1, at(0), at(1), at(2), None, at(10), ExitReason.ERRORED, "rank 0 exited with 1\nTraceback"),
            Attempt(2, at(10), at(11), at(12), None, at(20), ExitReason.SYSTEM, "agent gone"),
        ],
        saved=[SavedCheckpoint(at(8), 100, 1)],
    )
    assert displayed(history, 25)[-2:] == [(2, "running", 12), (2, "backing_off", 20)]
    assert segments_of(history, at(25))[-1].reason == "attempt 2 failed: agent gone"
    (restart,) = [m for m in on_curve(moments_of(history)) if m.kind == "restart"]
    assert (restart.steps, restart.run_id) == (100, 2)
    assert restart.text == "restarted after attempt 1: rank 0 exited with 1"


def test_a_paused_trial_whose_container_lives_is_pausing():
    moves = [Move(at(5), A, P, "ann")]
    living = History(7, at(0), P, moves=moves, tries=[Attempt(1, at(0), at(1), at(2), at(5))])
    assert displayed(living)[-1] == (1, "pausing", 5)
    without_container = History(
        7, at(0), P, moves=moves, tries=[Attempt(1, at(0), at(1), at(2), at(5), at(9), ExitReason.PREEMPTED)]
    )
    assert displayed(without_container)[-1] == (1, "paused", 9)


def test_an_active_trial_that_is_preempted_is_stopping():
    drained = History(7, at(0), A, tries=[Attempt(1, at(0), at(1), at(2), at(5))])
    assert displayed(drained)[-1] == (1, "stopping", 5)


TIMES = st.integers(-20, 120).map(at)
MAYBE = st.none() | TIMES
STATES = st.sampled_from(list(TrialState))


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Draws any history that rows could contain, including times of clocks that jump."""
    tries = [
        Attempt(
            run,
            draw(TIMES),
            draw(MAYBE),
            draw(MAYBE),
            draw(MAYBE),
            draw(MAYBE),
            draw(st.none() | st.sampled_from(list(ExitReason))),
            draw(st.sampled_from(["", "broke"])),
        )
        for run in range(1, draw(st.integers(0, 5)) + 1)
    ]
    moves = sorted(
        draw(st.lists(st.builds(Move, TIMES, STATES, STATES, st.just("ann")), max_size=6)), key=lambda m: m.time
    )
    saved = draw(st.lists(st.builds(SavedCheckpoint, TIMES, st.integers(0, 9), st.integers(0, 5)), max_size=4))
    return History(
        1, at(0), draw(STATES), draw(MAYBE), draw(st.none() | st.sampled_from(list(ExitReason))), draw(MAYBE),
        moves, tries, saved,
    )  # fmt: skip


@given(histories(), st.integers(0, 150).map(at))
def test_segments_follow_each_other_without_gap_or_overlap(history: History, now: datetime):
    segments = segments_of(history, now)
    assert segments[0].from_ == history.created
    assert segments[-1].to is None, "the last one lasts: to the end of the trial, or to now"
    for one, following in pairwise(segments):
        assert one.to == following.from_
        assert one.from_ < following.from_
        assert (one.run_id, one.kind, one.reason) != (following.run_id, following.kind, following.reason)
    assert all(segment.from_ <= max(now, history.created) for segment in segments)


@given(histories())
def test_moments_are_in_order_and_on_the_curve(history: History):
    times = [moment.time for moment in moments_of(history)]
    assert times == sorted(times)
    assert all(mark.steps >= 0 for mark in on_curve(moments_of(history)))
