"""Preemption and back-fill: tables of cases."""

from dataclasses import replace

import pytest
from tests.support.pools import PREEMPTING, agent, applied, ended, fair, request, running

from determined_master.scheduling.plan import Release
from determined_master.scheduling.scheduler import plan
from determined_master.scheduling.view import PoolView, ProviderShape, SchedulerView


def pool(agents, waiting, active=(), scheduler=PREEMPTING):
    return PoolView("p", tuple(agents), tuple(waiting), tuple(active), scheduler)


def released(some_pool):
    return {release.allocation_id for release in plan(some_pool).releases}


def placed(some_pool):
    return {placement.allocation_id for placement in plan(some_pool).placements}


def low(name, slots, **more):
    return running(name, {"a": slots}, **({"priority": 99} | more))


def test_the_worst_allocation_is_preempted_for_a_better_request():
    full = pool([agent("a", 0, 2)], [request("vip", 1, 1)], [low("worse", [0]), low("bad", [1], priority=50)])
    assert plan(full).releases == (Release("worse", "vip", "preempted for vip, which has a better priority (1)"),)
    assert plan(full).placements == ()
    assert plan(full).waiting["vip"] == "starts when worse has saved and left"


def test_without_preemption_no_allocation_is_released():
    full = pool([agent("a", 0, 1)], [request("vip", 1, 1)], [low("r", [0])])
    assert released(replace(full, scheduler=replace(PREEMPTING, preemption=False))) == set()
    assert released(full) == {"r"}


def test_no_allocation_is_preempted_for_a_request_that_is_not_better():
    for priority, age in ((99, 0), (99, 1), (50, 9)):
        full = pool([agent("a", 0, 1)], [request("x", 1, 99, age=1)], [low("r", [0], priority=priority, age=age)])
        assert released(full) == set()


def test_of_the_same_priority_only_allocations_queued_behind_are_preempted():
    full = pool([agent("a", 0, 2)], [request("x", 1, age=5)], [low("first", [0], priority=42, age=4)])
    assert released(full) == set()
    behind = pool([agent("a", 0, 2)], [request("x", 1, age=5)], [low("behind", [0], priority=42, age=6)])
    assert released(behind) == {"behind"}


def test_an_allocation_that_is_not_preemptible_stays():
    full = pool([agent("a", 0, 1)], [request("vip", 1, 1)], [low("notebook", [0], preemptible=False)])
    assert released(full) == set()
    assert "needs 1 slot; 0 of 1 free" in plan(full).waiting["vip"]


def test_no_more_allocations_are_preempted_than_needed():
    """The small ones have a worse priority, but the request does not fit without the large one, which is enough."""
    active = [low("large", [0, 1, 2, 3], priority=50), low("s1", [4]), low("s2", [5])]
    assert released(pool([agent("a", 0, 6)], [request("vip", 4, 1)], active)) == {"large"}


def test_one_agent_is_emptied_for_a_request_that_must_not_be_spread():
    active = [running(f"{name}{n}", {name: [n]}, 99) for name in "ab" for n in range(2)]
    full = pool([agent("a", 0, 2), agent("b", 0, 2)], [request("vip", 2, 1, single_agent=True)], active)
    assert released(full) in ({"a0", "a1"}, {"b0", "b1"})


def test_slots_of_allocations_that_are_leaving_count_as_coming_free():
    full = pool([agent("a", 0, 2)], [request("vip", 1, 1)], [low("gone", [0], leaving=True), low("r", [1])])
    assert released(full) == set()
    assert plan(full).waiting["vip"] == "starts when gone has saved and left"


def test_two_better_requests_do_not_count_the_same_slots():
    waiting = [request("one", 1, 1), request("two", 1, 1, age=1)]
    full = pool([agent("a", 0, 2)], waiting, [low("gone", [0], leaving=True), low("r", [1])])
    assert plan(full).releases[0].for_allocation_id == "two"


def test_slots_freed_by_preemption_are_reserved_for_the_request():
    waiting = [request("vip", 2, 1), request("small", 1, 98)]
    full = pool([agent("a", 0, 2)], waiting, [low("r1", [0]), low("r2", [1])])
    after = applied(full, plan(full))
    half = ended(after, ["r1"])
    assert (placed(half), released(half)) == (set(), set())
    assert placed(ended(half, ["r2"])) == {"vip"}


def test_only_preemptible_requests_are_backfilled():
    waiting = [request("wide", 3, 1), request("trial", 1, 50), request("notebook", 1, 50, age=-1, preemptible=False)]
    full = pool([agent("a", 2, 3)], waiting, [low("better", [2], priority=1, age=-1)])
    assert placed(full) == {"trial"}
    assert plan(full).waiting["notebook"] == "queued behind wide, which has a higher priority (1)"
    later = ended(applied(full, plan(full)), ["better"])
    assert released(later) == {"trial"}


def test_requests_of_the_same_priority_are_not_backfilled():
    """They could not be preempted for it."""
    waiting = [request("t1", 2, job="j"), request("t2", 1, job="j", age=0)]
    full = pool([agent("a", 1, 2)], waiting, [low("r", [1], priority=1)])
    full = replace(full, agents=(replace(full.agents[0], free=(0,)),))
    assert placed(full) == set()


def test_a_request_behind_a_better_one_of_its_shape_is_not_passed_by_its_equals():
    """Of a shape that does not fit, only the first request is looked at."""
    waiting = [request("other", 3, age=1), request("t1", 3, job="j", age=2), request("t2", 1, job="j", age=2)]
    full = pool([agent("a", 3)], waiting, [])
    blocked = replace(full, agents=(replace(full.agents[0], free=(1, 2)),), running=(low("r", [0], priority=1),))
    assert placed(blocked) == set()
    behind = replace(waiting[2], job_id="k", position=3.0)
    assert placed(replace(blocked, waiting=(*waiting[:2], behind))) == {"t2"}


def test_a_request_held_back_by_its_own_limit_blocks_no_other():
    for scheduler in (PREEMPTING, replace(PREEMPTING, preemption=False)):
        held = request("held", 2, 1, job="j", max_slots=2)
        active = [running("r", {"a": [0]}, 1, job="j", max_slots=2)]
        free = replace(agent("a", 0, 3), free=(1, 2))
        some = pool([free], [held, request("x", 1, preemptible=False)], active, scheduler)
        assert placed(some) == {"x"}
        assert "max_slots 2 of its job leaves 1" in plan(some).waiting["held"]


def test_a_user_gets_no_more_slots_than_the_pool_allows():
    scheduler = replace(PREEMPTING, max_slots_per_user=2)
    waiting = [request(f"m{n}", 1, age=n) for n in range(3)] + [request("other", 1, age=9, user_id=2)]
    some = pool([agent("a", 4)], waiting, (), scheduler)
    assert placed(some) == {"m0", "m1", "other"}
    assert "allows a user 2" in plan(some).waiting["m2"]


def test_a_request_that_no_enabled_agent_can_hold_blocks_no_other():
    agents = [agent("off", 4, placeable=False, condition="disabled"), agent("a", 2)]
    some = pool(agents, [request("wide", 4, 1), request("x", 1)], (), replace(PREEMPTING, preemption=False))
    assert placed(some) == {"x"}
    assert "1 agent disabled" in plan(some).waiting["wide"]


def test_an_excluded_agent_is_not_chosen_and_not_emptied():
    some = pool([agent("a", 2), agent("b", 1)], [request("x", 1, excluded=frozenset(["a"]))])
    assert plan(some).placements[0].parts[0].agent_id == "b"
    full = pool([agent("a", 0, 1), agent("b", 0, 1)], [request("x", 1, 1, excluded=frozenset(["a"]))], [low("r", [0])])
    assert released(full) == set()
    refusal = plan(pool([agent("a", 2)], [request("x", 1, excluded=frozenset(["a"]))])).refusals[0]
    assert "no agent of pool 'p' may run it (a excluded by its log policies)" in refusal.reason


def test_worst_fitting_spreads_over_agents():
    scheduler = replace(PREEMPTING, fitting="worst")
    agents = [replace(agent("a", 0, 4), free=(3,)), agent("b", 4), agent("c", 2)]
    chosen = plan(pool(agents, [request("x", 1)], (), scheduler)).placements[0].parts[0].agent_id
    assert chosen == "b"
    assert plan(pool(agents, [request("x", 1)])).placements[0].parts[0].agent_id == "a"


def test_a_refusal_names_the_nearest_shape_also_with_a_provider():
    scheduler = SchedulerView(provider_can_add=ProviderShape(4, 2))
    waiting = [request("fits", 9), request("never", 12), request("single", 5, single_agent=True)]
    decided = plan(pool([agent("a", 1)], waiting, (), scheduler))
    assert {r.allocation_id for r in decided.refusals} == {"never", "single"}
    reasons = {r.allocation_id: r.reason for r in decided.refusals}
    assert "lower resources.slots_per_trial to 9 or less" in reasons["never"]
    assert "lower resources.slots_per_trial to 4 or less" in reasons["single"]


@pytest.mark.parametrize("scheduler", [SchedulerView(), PREEMPTING, fair()])
def test_allocations_above_a_lowered_limit_are_released_worst_first(scheduler):
    def running_of_job(name, slots, **more):
        return running(name, {"a": slots}, job="j", **({"max_slots": 3} | more))

    active = [
        running_of_job("t1", [0, 1]),
        running_of_job("t2", [2]),
        running_of_job("t3", [3]),
        running("other", {"a": [4]}),
    ]
    full = pool([agent("a", 0, 6)], [], active, scheduler)
    assert plan(full).releases == (Release("t3", None, "max_slots of its job was lowered to 3"),)
    partly_leaving = pool(
        [agent("a", 0, 6)], [], [active[0], running_of_job("t2", [2], leaving=True), active[2]], scheduler
    )
    assert released(partly_leaving) == set()
    unlimited = [replace(each, max_slots=None) for each in active]
    assert released(pool([agent("a", 0, 6)], [], unlimited, scheduler)) == set()
    none = [replace(each, max_slots=0) for each in active[:3]]
    assert released(pool([agent("a", 0, 6)], [], none, scheduler)) == {"t1", "t2", "t3"}
