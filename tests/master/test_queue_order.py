"""Moves in the queue of a pool: a table of cases, and properties of any queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from determined.errors import BadRequest, Forbidden
from determined_master.jobs.queue_order import QueuedJob, check_passed, check_priority, move

ADA, BOB = 1, 2


def queue(*places: tuple[str, int, int]) -> list[QueuedJob]:
    return [QueuedJob(name, ADA, priority, position) for name, priority, position in places]


def after(jobs: list[QueuedJob], job_id: str, anchor: str, *, is_ahead: bool) -> list[QueuedJob]:
    """Returns the queue after a move, in order."""
    moved = move(jobs, job_id, anchor=anchor, is_ahead=is_ahead)
    changed = [
        QueuedJob(
            queued.job_id,
            queued.user_id,
            moved.priority if queued.job_id == job_id else queued.priority,
            moved.positions.get(queued.job_id, queued.position),
        )
        for queued in jobs
    ]
    return sorted(changed, key=lambda queued: queued.order)


def names(jobs: list[QueuedJob]) -> str:
    return "".join(queued.job_id for queued in jobs)


@pytest.mark.parametrize(
    ("job", "anchor", "is_ahead", "expected"),
    [
        ("d", "b", True, "adbc"),
        ("d", "a", True, "dabc"),
        ("a", "d", False, "bcda"),
        ("a", "b", False, "bacd"),
        ("b", "c", True, "abcd"),
    ],
)
def test_a_job_moves_right_ahead_of_or_behind_another(job: str, anchor: str, is_ahead: bool, expected: str) -> None:
    jobs = queue(("a", 42, 10), ("b", 42, 20), ("c", 42, 30), ("d", 42, 40))
    assert names(after(jobs, job, anchor, is_ahead=is_ahead)) == expected


def test_jobs_without_room_between_them_keep_their_order_and_make_room() -> None:
    jobs = queue(("a", 42, 10), ("b", 42, 11), ("c", 42, 12), ("d", 42, 90))
    assert names(after(jobs, "d", "b", is_ahead=True)) == "adbc"
    assert move(jobs, "d", anchor="b", is_ahead=True).positions == {"d": 11, "b": 12, "c": 13}


def test_the_moved_job_takes_the_priority_of_the_other() -> None:
    jobs = queue(("urgent", 10, 50), ("usual", 42, 10))
    moved = move(jobs, "usual", anchor="urgent", is_ahead=False)
    assert (moved.priority, moved.passed) == (10, ())
    assert [queued.job_id for queued in move(jobs, "usual", anchor="urgent", is_ahead=True).passed] == ["urgent"]


def test_a_job_cannot_be_moved_past_itself_or_a_missing_job() -> None:
    jobs = queue(("a", 42, 10), ("b", 42, 20))
    with pytest.raises(BadRequest, match="past itself"):
        move(jobs, "a", anchor="a", is_ahead=True)
    with pytest.raises(BadRequest, match="job gone is not in the queue"):
        move(jobs, "a", anchor="gone", is_ahead=True)


def test_only_an_admin_may_move_a_job_ahead_of_other_users_jobs() -> None:
    jobs = [QueuedJob("bobs", BOB, 42, 10), QueuedJob("mine", ADA, 42, 20), QueuedJob("late", ADA, 42, 30)]
    past_bob = move(jobs, "late", anchor="bobs", is_ahead=True)
    with pytest.raises(Forbidden, match="it would pass job bobs"):
        check_passed(past_bob, ADA, is_admin=False)
    check_passed(past_bob, ADA, is_admin=True)
    check_passed(move(jobs, "late", anchor="mine", is_ahead=True), ADA, is_admin=False)


@pytest.mark.parametrize(
    ("new", "old", "is_refused"), [(41, 42, True), (42, 60, False), (60, 42, False), (41, 40, False)]
)
def test_only_an_admin_makes_a_job_more_urgent_than_the_default(new: int, old: int, is_refused: bool) -> None:
    check_priority(new=new, old=old, default=42, is_admin=True)
    if is_refused:
        with pytest.raises(Forbidden, match="better priority than its pool's default"):
            check_priority(new=new, old=old, default=42, is_admin=False)
    else:
        check_priority(new=new, old=old, default=42, is_admin=False)


@st.composite
def moves(draw: st.DrawFn) -> tuple[list[QueuedJob], str, str, bool]:
    places = draw(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 6)), min_size=2, max_size=8))
    jobs = [QueuedJob(str(number), ADA, *place) for number, place in enumerate(places)]
    job, anchor = draw(st.permutations(range(len(jobs))))[:2]
    return jobs, str(job), str(anchor), draw(st.booleans())


@given(moves())
def test_a_move_changes_nothing_but_the_place_of_one_job(case: tuple[list[QueuedJob], str, str, bool]) -> None:
    jobs, job, anchor, is_ahead = case
    before = [queued.job_id for queued in sorted(jobs, key=lambda queued: queued.order)]
    order_after = [queued.job_id for queued in after(jobs, job, anchor, is_ahead=is_ahead)]
    assert [queued for queued in order_after if queued != job] == [queued for queued in before if queued != job]
    assert order_after.index(job) == order_after.index(anchor) + (-1 if is_ahead else 1)
    passed = {queued.job_id for queued in move(jobs, job, anchor=anchor, is_ahead=is_ahead).passed}
    assert passed == {
        queued for queued in before[: before.index(job)] if order_after.index(queued) > order_after.index(job)
    }
