"""Fair shares: cases, and convergence over simulated time."""

import random
from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.pools import agent, applied, ended, fair, request, running

from determined_master.scheduling.scheduler import plan
from determined_master.scheduling.view import PoolView

SLOTS = 12


def shares(pool):
    slots_of_job = Counter()
    for allocation in pool.running:
        slots_of_job[allocation.job_id] += allocation.slots
    return slots_of_job


def settled(pool):
    """Applies plans and ends the allocations that are preempted, until nothing changes."""
    for _ in range(50):
        decided = plan(pool)
        if not decided.placements and not decided.releases and not any(r.leaving for r in pool.running):
            return pool
        pool = applied(pool, decided)
        leaving = [r for r in pool.running if r.leaving]
        pool = ended(pool, [r.allocation_id for r in leaving])
        pool = replace(pool, waiting=(*pool.waiting, *(next_attempt(r) for r in leaving)))
    raise AssertionError("it never comes to rest")


def next_attempt(r):
    """Returns the next attempt of a preempted trial."""
    slots = sum(len(part.slots) for part in r.parts)
    allocation = request(f"{r.allocation_id}'", slots, r.priority, job=r.job_id, weight=r.weight, max_slots=r.max_slots)
    return replace(allocation, position=r.position)


def job(name, count, slots=1, age=0, **more):
    return [request(f"{name}{n}", slots, age=age, job=name, **more) for n in range(count)]


def test_a_new_job_gets_its_share_from_one_that_has_all():
    active = tuple(running(f"a{n}", {"x": [n]}, job="a") for n in range(SLOTS))
    pool = PoolView("p", (agent("x", 0, SLOTS),), tuple(job("b", 20, age=1)), active, fair())
    assert shares(settled(pool)) == {"a": 6, "b": 6}
    assert {r.for_allocation_id[0] for r in plan(pool).releases} == {"b"}


def test_jobs_share_slots_in_proportion_to_their_weights():
    waiting = [*job("a", 20, weight=2.0), *job("b", 20, age=1)]
    assert shares(settled(PoolView("p", (agent("x", SLOTS),), tuple(waiting), (), fair()))) == {"a": 8, "b": 4}


def test_slots_that_a_job_cannot_use_go_to_other_jobs():
    waiting = [*job("a", 2), *job("b", 20), *job("c", 20, max_slots=3)]
    assert shares(settled(PoolView("p", (agent("x", SLOTS),), tuple(waiting), (), fair()))) == {"a": 2, "b": 7, "c": 3}


def test_a_better_priority_comes_before_shares():
    waiting = [*job("a", 10, priority=1), *job("b", 20)]
    active = tuple(running(f"b{n}'", {"x": [n]}, job="b") for n in range(SLOTS))
    pool = PoolView("p", (agent("x", 0, SLOTS),), tuple(waiting), active, fair())
    assert shares(settled(pool)) == {"a": 10, "b": 2}


def test_the_newest_gang_that_does_not_fit_in_its_share_waits():
    waiting = [*job("a", 3, slots=4), *job("b", 3, slots=4, age=1), *job("c", 3, slots=4, age=2)]
    pool = PoolView("p", (agent("x", 4), agent("y", 4)), tuple(waiting), (), fair())
    assert shares(settled(pool)) == {"a": 4, "b": 4}


def test_allocations_that_cannot_be_preempted_count_for_the_share_and_stay():
    active = tuple(running(f"a{n}", {"x": [n]}, job="a", preemptible=False) for n in range(SLOTS))
    pool = PoolView("p", (agent("x", 0, SLOTS),), tuple(job("b", 20, age=1)), active, fair())
    assert plan(pool).releases == ()


def test_jobs_with_even_shares_are_not_preempted():
    active = [running(f"{name}{n}", {"x": [n + 6 * (name == "b")]}, job=name) for name in "ab" for n in range(6)]
    waiting = [
        *job("a'", 0),
        *[replace(r, job_id="a") for r in job("c", 3)],
        *[replace(r, job_id="b") for r in job("d", 3)],
    ]
    pool = PoolView("p", (agent("x", 0, SLOTS),), tuple(waiting), tuple(active), fair())
    assert (plan(pool).placements, plan(pool).releases) == ((), ())


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([1.0, 1.0, 2.0, 3.0]), min_size=2, max_size=4),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
def test_shares_converge_over_time(weights, first, rng):
    """Simulates jobs with more than enough single-slot trials, one of which first holds every slot. Trials end at
    random and others replace them. At the end no job has more than its share plus one slot, and none has so few that it
    is due a slot of another job."""
    names = [f"j{n}" for n in range(len(weights))]
    favourite = names[first % len(names)]
    active = tuple(
        running(f"r{n}", {"x": [n]}, job=favourite, weight=weights[names.index(favourite)]) for n in range(SLOTS)
    )
    waiting = [
        r
        for number, (name, weight) in enumerate(zip(names, weights, strict=True))
        for r in job(name, 60, age=number, weight=weight)
    ]
    pool = PoolView("p", (agent("x", 0, SLOTS),), tuple(waiting), active, fair())
    for _ in range(6):
        pool = settled(pool)
        slots_of_job = shares(pool)
        assert sum(slots_of_job.values()) == SLOTS
        for name, weight in zip(names, weights, strict=True):
            assert slots_of_job[name] <= SLOTS * weight / sum(weights) + 1.0
            assert all(
                (slots_of_job[o] - 1) / w <= slots_of_job[name] / weight for o, w in zip(names, weights, strict=True)
            )
        pool = ended(pool, rng.sample(sorted(r.allocation_id for r in pool.running), 3))


def test_plans_of_a_long_random_run_never_undo_each_other():
    """Gangs and single trials of four jobs start and end. Between two ends the pool always reaches a stable state."""
    rng = random.Random(7)
    pool = PoolView("p", (agent("x", 4), agent("y", 4), agent("z", 4)), (), (), fair())
    for step in range(60):
        name = rng.choice("abcd")
        allocation = request(f"{name}{step}", rng.choice([1, 1, 2, 4, 6]), job=name, age=ord(name))
        pool = settled(replace(pool, waiting=(*pool.waiting, allocation)))
        if pool.running and rng.random() < 0.6:
            pool = ended(pool, [rng.choice([r.allocation_id for r in pool.running])])
