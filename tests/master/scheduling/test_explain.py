"""Explanations agree with the plans of changed pools: each change is compared with a search over all of its kind."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.pools import PREEMPTING, START, agent, any_scheduler, pools, request, running

from determined_master.scheduling.explain import explain
from determined_master.scheduling.scheduler import Scheduler, plan
from determined_master.scheduling.view import Launches, PoolView, ProviderShape, SchedulerView
from determined_master.scheduling.what_if import changes_that_start


def starts(pool, name):
    return any(placement.allocation_id == name for placement in plan(pool).placements)


def with_waiting(pool, change):
    return replace(pool, waiting=tuple(change(r) for r in pool.waiting))


def with_job(pool, job_id, **changes):
    def change(request_view):
        return replace(request_view, **changes) if request_view.job_id == job_id else request_view

    return replace(with_waiting(pool, change), running=tuple(change(r) for r in pool.running))


def with_slots(pool, name, number, slots):
    def change(r):
        if r.allocation_id != name:
            return r
        groups = list(r.groups)
        groups[number] = replace(groups[number], slots=slots)
        return replace(r, groups=tuple(groups))

    return with_waiting(pool, change)


def with_agent(pool, changed):
    return replace(pool, agents=tuple(changed if a.id == changed.id else a for a in pool.agents))


def without_job(pool, job_id):
    without_waiting = replace(pool, waiting=tuple(r for r in pool.waiting if r.job_id != job_id))
    removed = [r for r in pool.running if r.job_id == job_id]
    disabled = {(a.id, slot) for a in pool.agents for slot in a.disabled}
    agents = tuple(
        replace(
            a,
            free=(
                *a.free,
                *(s for r in removed for part in r.parts if part.agent_id == a.id for s in part.slots
                  if (a.id, s) not in disabled),
            ),
        )
        for a in without_waiting.agents
    )  # fmt: skip
    return replace(without_waiting, agents=agents, running=tuple(r for r in pool.running if r.job_id != job_id))


def check(pool, other):
    waiting = plan(pool).waiting
    held = {(part.agent_id, slot) for r in pool.running for part in r.parts for slot in part.slots}
    for request_view in pool.waiting:
        name = request_view.allocation_id
        if name not in waiting:
            continue
        changes = explain(pool, name, [other]).changes
        slotted = [number for number, group in enumerate(request_view.groups) if group.slots]
        fewer = None
        if len(slotted) == 1:
            number = slotted[0]
            tried = range(request_view.groups[number].slots - 1, 0, -1)
            fewer = next((v for v in tried if starts(with_slots(pool, name, number, v), name)), None)
        assert changes.slots == fewer
        numbers = range(request_view.priority - 1, 0, -1)
        assert changes.priority == next(
            (v for v in numbers if starts(with_job(pool, request_view.job_id, priority=v), name)), None
        )
        limits = range((request_view.max_slots or 0) + 1, 60) if request_view.max_slots is not None else ()
        assert changes.max_slots == next(
            (v for v in limits if starts(with_job(pool, request_view.job_id, max_slots=v), name)), None
        )
        other_with_request = replace(other, waiting=(*other.waiting, request_view))
        assert changes.pools == (("other",) if starts(other_with_request, name) else ())
        disabled = [a for a in pool.agents if not a.placeable and a.is_connected]
        assert changes.agents == tuple(
            a.id for a in disabled if starts(with_agent(pool, replace(a, placeable=True)), name)
        )
        slots = []
        for a in pool.agents:
            for slot in a.disabled:
                free = a.free if (a.id, slot) in held else (*a.free, slot)
                enabled = replace(a, free=free, disabled=tuple(s for s in a.disabled if s != slot))
                slots += [(a.id, slot)] if starts(with_agent(pool, enabled), name) else []
        assert list(changes.slot_ids) == slots
        jobs = sorted({r.job_id for r in [*pool.waiting, *pool.running]} - {request_view.job_id})
        assert changes.paused_jobs == tuple(j for j in jobs if starts(without_job(pool, j), name))


def other_pool(draw_from):
    def renamed(pool):
        waiting = tuple(replace(r, allocation_id=f"o{r.allocation_id}", job_id=f"o{r.job_id}") for r in pool.waiting)
        active = tuple(replace(r, allocation_id=f"o{r.allocation_id}", job_id=f"o{r.job_id}") for r in pool.running)
        return replace(pool, name="other", waiting=waiting, running=active)

    return draw_from.map(renamed)


clusters = st.tuples(pools(any_scheduler, max_waiting=5), other_pool(pools(any_scheduler, max_waiting=2)))


@given(clusters)
@settings(max_examples=100, deadline=None)
def test_each_change_is_the_least_of_its_kind_that_starts_the_request(pair):
    check(*pair)


@pytest.mark.long
@given(clusters)
@settings(max_examples=500, deadline=None)
def test_each_change_is_the_least_of_its_kind_in_many_clusters(pair):
    check(*pair)


@settings(deadline=None)
@given(pools(any_scheduler))
def test_an_explanation_does_not_change_the_scheduler(pool):
    scheduler = Scheduler.of(pool)
    before = scheduler.plan()
    for request_view in pool.waiting:
        changes_that_start(scheduler, request_view, [])
    assert {r: set(p.parts) for r, p in ((p.allocation_id, p) for p in scheduler.plan().placements)} == {
        p.allocation_id: set(p.parts) for p in before.placements
    }
    assert scheduler.plan().waiting == before.waiting


def test_an_explanation_names_the_holders_of_the_slots_and_when_they_end():
    holders = (
        running("late", {"a": [0]}, seconds_left=60.0),
        running("soon", {"a": [1]}, seconds_left=10.0),
        running("elsewhere", {"b": [0]}, seconds_left=5.0),
    )
    pool = PoolView("p", (agent("a", 0, 2), agent("b", 0, 1)), (request("wide", 2, single_agent=True),), holders)
    explanation = explain(pool, "wide")
    assert [(b.allocation_id, b.why, b.seconds_left) for b in explanation.blockers] == [
        ("soon", "running", 10.0),
        ("late", "running", 60.0),
    ]
    assert (explanation.starts_in_seconds, explanation.unknown, explanation.ahead) == (60.0, "", 0)
    assert explanation.changes.paused_jobs == ()
    assert explanation.changes.slots is None


def test_an_explanation_names_the_better_request_that_waits_for_the_same_slots():
    pool = PoolView("p", (agent("a", 1, 2),), (request("wide", 2), request("narrow", 1, age=1)))
    explanation = explain(pool, "narrow")
    assert [(b.allocation_id, b.why) for b in explanation.blockers] == [("wide", "ahead")]
    assert explanation.ahead == 1
    assert explanation.changes.priority == 41
    assert explanation.changes.paused_jobs == ("wide",)


def test_an_unknown_start_names_the_allocation_of_unknown_duration():
    pool = PoolView("p", (agent("a", 0, 1),), (request("x"),), (running("r", {"a": [0]}),))
    explanation = explain(pool, "x")
    assert explanation.starts_in_seconds is None
    assert explanation.unknown == "nobody knows how long r will run"


def test_a_start_behind_others_that_have_not_started_is_unknown():
    waiting = (request("first"), request("second", age=1))
    pool = PoolView("p", (agent("a", 0, 1),), waiting, (running("r", {"a": [0]}, seconds_left=5.0),))
    assert explain(pool, "first").starts_in_seconds == 5.0
    assert "others that have not started" in explain(pool, "second").unknown


def test_a_preempting_request_starts_after_the_save():
    low = running("low", {"a": [0, 1]}, priority=99, seconds_to_save=30.0)
    pool = PoolView("p", (agent("a", 0, 2),), (request("high", 1, 1),), (low,), PREEMPTING)
    explanation = explain(pool, "high")
    assert explanation.starts_in_seconds == 30.0
    assert [(b.allocation_id, b.why) for b in explanation.blockers] == [("low", "leaving")]


def test_a_request_held_back_by_its_limit_names_the_allocations_that_count():
    mine = running("r", {"a": [0]}, job="j", max_slots=1, seconds_left=7.0)
    pool = PoolView("p", (agent("a", 1, 2),), (request("x", job="j", max_slots=1),), (mine,))
    pool = replace(pool, agents=(replace(pool.agents[0], free=(1,)),))
    explanation = explain(pool, "x")
    assert [(b.allocation_id, b.why) for b in explanation.blockers] == [("r", "limit")]
    assert explanation.changes.max_slots == 2
    assert explanation.starts_in_seconds == 7.0


def test_a_request_that_starts_now_has_no_reason_to_wait():
    explanation = explain(PoolView("p", (agent("a", 1),), (request("x"),)), "x")
    assert (explanation.reason, explanation.starts_in_seconds, explanation.blockers) == ("", 0.0, ())


def test_the_explanation_of_a_refused_request_names_the_slots_that_would_fit():
    explanation = explain(PoolView("p", (agent("a", 2),), (request("x", 4),)), "x")
    assert "lower resources.slots_per_trial to 2" in explanation.reason
    assert explanation.changes.slots == 2


STARTING = {"starting": 1, "starting_since": START}


@pytest.mark.parametrize(
    ("launches", "text"),
    [
        ({}, ""),
        (STARTING, "; an agent is starting (since 2026-01-01T00:00:00Z)"),
        (STARTING | {"starting": 2}, "; 2 agents are starting (since 2026-01-01T00:00:00Z)"),
        ({"failures": 1, "failure": "no quota"}, "; the launch of an agent failed: no quota"),
        ({"failures": 3, "failure": "no quota"}, "; the launch of an agent failed 3 times in a row: no quota"),
        ({"existing": 4}, "; the pool is at its maximum of 4 agents"),
        ({"existing": 4, "stuck": "busy"}, "; the pool is at its maximum of 4 agents; an agent cannot be ended: busy"),
    ],
)
@pytest.mark.parametrize(
    ("agents", "waits", "need"),
    [
        ([], request("w"), "pool 'p' has no agent yet"),
        ([agent("a", 0, 1)], request("w"), "needs 1 slot; 0 of 1 free in pool 'p'"),
        ([agent("a", 1)], request("w", 2), "needs 2 slots; 1 of 1 free in pool 'p'"),
    ],
)
def test_a_waiting_reason_describes_the_action_of_the_provider(launches, text, agents, waits, need):
    shape = ProviderShape(2, 3, Launches(max_agents=4, **launches))
    pool = PoolView("p", tuple(agents), (waits,), (), SchedulerView(provider_can_add=shape))
    reason = plan(pool).waiting["w"]
    assert reason == need + text
    assert explain(pool, "w").reason == reason


def test_the_start_of_an_agent_has_no_estimate():
    shape = ProviderShape(2, 3, Launches(max_agents=4, starting=1, starting_since=START))
    pool = PoolView("p", (), (request("w"),), (), SchedulerView(provider_can_add=shape))
    explanation = explain(pool, "w")
    assert (explanation.starts_in_seconds, explanation.unknown) == (
        None,
        "nobody knows how long the start of an agent takes",
    )
    explanation = explain(replace(pool, scheduler=SchedulerView()), "w")
    assert (explanation.starts_in_seconds, explanation.unknown) == (None, "nobody knows when an agent joins the pool")
