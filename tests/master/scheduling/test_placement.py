"""Placement: tables of cases, and properties of any pool."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from determined_master.scheduling.scheduler import plan
from determined_master.scheduling.view import AgentView, Constraints, PoolView, RequestView, TaskGroup

START = datetime(2026, 1, 1, tzinfo=UTC)


def request(name, slots=1, priority=42, age=0, single_agent=False):
    return waiting(name, slots, priority, START + timedelta(seconds=age), Constraints(single_agent))


def waiting(allocation_id, slots=1, priority=42, submitted_at=START, constraints=Constraints()):
    return RequestView(
        allocation_id,
        job_id=allocation_id,
        groups=(TaskGroup(slots=slots, constraints=constraints),),
        priority=priority,
        weight=1.0,
        position=submitted_at,
        submitted_at=submitted_at,
        user_id=1,
        preemptible=False,
    )


def agent(name, free, total=None, placeable=True):
    return AgentView(name, tuple(range(free)), free if total is None else total, placeable)


def placed(pool):
    return {p.allocation_id: [(part.agent_id, part.slots) for part in p.parts] for p in plan(pool).placements}


def shape(pool, name):
    """Returns the agents and the number of slots of each, in the order of the ranks."""
    return [(agent_id, len(slots)) for agent_id, slots in placed(pool)[name]]


def test_lower_priority_number_goes_first_then_the_older():
    pool = PoolView(
        "default", (agent("a", 2),), (request("late", age=2), request("early", age=1), request("vip", 1, 1, 9))
    )
    assert set(placed(pool)) == {"vip", "early"}
    assert "late" in plan(pool).waiting


def test_a_request_goes_to_the_agent_with_the_fewest_free_slots_left():
    assert placed(PoolView("p", (agent("big", 4), agent("small", 2)), (request("x", 2),)))["x"] == [("small", (0, 1))]


def test_two_requests_on_one_agent_get_different_slots():
    assert placed(PoolView("p", (agent("a", 3),), (request("x", 2), request("y", 1, age=1)))) == {
        "x": [("a", (0, 1))],
        "y": [("a", (2,))],
    }


def test_the_waiting_reason_names_slots_that_are_not_used():
    reasons = ("slot 1 of a: it is lost", "slot 2 of a: process 7 uses it")
    busy = AgentView("a", (), 3, unusable=reasons)
    lost_agent = AgentView("b", (), 1, placeable=False, unusable=("slot 0 of b: it is lost",))
    reason = plan(PoolView("p", (busy, lost_agent), (request("x"),))).waiting["x"]
    assert reason == (
        "needs 1 slot; 0 of 4 free in pool 'p'; 1 agent disabled or disconnected; "
        "slot 1 of a: it is lost (1 more like it)"
    )


def test_no_request_passes_a_waiting_one_of_better_priority():
    pool = PoolView("p", (agent("a", 1, total=2),), (request("wide", 2, 1), request("narrow", 1, 42)))
    assert placed(pool) == {}
    assert "higher priority" in plan(pool).waiting["narrow"]


def test_a_smaller_request_of_the_same_priority_does_not_pass_an_older_one():
    pool = PoolView("p", (agent("a", 1, total=2),), (request("wide", 2, age=0), request("narrow", 1, age=1)))
    assert placed(pool) == {}
    assert plan(pool).waiting["narrow"] == "queued behind wide, which comes first and waits for the same slots"


def test_a_request_larger_than_the_pool_is_refused_with_the_reason():
    pool = (agent("a", 0, total=2), agent("b", 1))
    refusal = plan(PoolView("p", pool, (request("huge", 4),))).refusals[0]
    assert refusal.allocation_id == "huge"
    assert "4 slots" in refusal.reason
    assert "together have 3" in refusal.reason
    alone = plan(PoolView("p", pool, (request("wide", 3, single_agent=True),))).refusals[0]
    assert "3 slots on one agent, but the largest agent of pool 'p' has 2" in alone.reason


def test_a_request_larger_than_one_agent_is_spread_over_several():
    pool = PoolView("p", (agent("a", 2), agent("b", 3), agent("c", 1)), (request("wide", 4),))
    assert shape(pool, "wide") == [("a", 2), ("b", 2)]


def test_a_spread_request_uses_the_fewest_agents():
    pool = PoolView("p", (agent("a", 1), agent("b", 3), agent("c", 4), agent("d", 1)), (request("wide", 6),))
    assert shape(pool, "wide") == [("b", 3), ("c", 3)]
    uneven = PoolView("p", (agent("a", 1), agent("b", 4)), (request("wide", 5),))
    assert shape(uneven, "wide") == [("b", 4), ("a", 1)]


def test_a_request_is_placed_whole_or_not_at_all():
    pool = PoolView("p", (agent("a", 2), agent("b", 1, total=2)), (request("wide", 4),))
    assert placed(pool) == {}
    assert "needs 4 slots; 3 of 4 free" in plan(pool).waiting["wide"]


def test_a_request_for_one_agent_is_not_spread():
    pool = PoolView("p", (agent("a", 1, total=2), agent("b", 1)), (request("x", 2, single_agent=True),))
    assert placed(pool) == {}
    assert "on one agent" in plan(pool).waiting["x"]


def test_an_agent_inside_its_reconnect_window_prevents_a_refusal():
    pool = PoolView("p", (agent("away", 4, placeable=False), agent("here", 1)), (request("wide", 4),))
    assert plan(pool).refusals == ()
    assert "wide" in plan(pool).waiting


def test_a_request_in_a_pool_without_agents_waits_with_that_reason():
    decided = plan(PoolView("p", (), (request("x"),)))
    assert decided.refusals == ()
    assert "no agent" in decided.waiting["x"]


def test_a_request_without_slots_runs_on_any_agent():
    assert placed(PoolView("p", (agent("a", 0, total=1),), (request("aux", 0),)))["aux"] == [("a", ())]


agents = st.lists(
    st.builds(
        AgentView,
        id=st.text("abcdef", min_size=1, max_size=3),
        free=st.sets(st.integers(0, 7)).map(lambda s: tuple(sorted(s))),
        total=st.integers(0, 8),
        placeable=st.booleans(),
    ).map(lambda a: AgentView(a.id, a.free, max(a.total, len(a.free)), a.placeable)),
    unique_by=lambda a: a.id,
    max_size=5,
)
requests = st.lists(
    st.builds(
        waiting,
        allocation_id=st.uuids().map(str),
        slots=st.integers(0, 9),
        priority=st.integers(1, 99),
        submitted_at=st.datetimes(timezones=st.just(UTC)),
        constraints=st.builds(Constraints, st.booleans()),
    ),
    unique_by=lambda r: r.allocation_id,
    max_size=12,
)


@given(agents, requests)
def test_no_slot_is_assigned_twice_and_every_request_has_a_result(some_agents, some_requests):
    decided = plan(PoolView("p", tuple(some_agents), tuple(some_requests)))
    by_id = {a.id: a for a in some_agents}
    parts = [part for p in decided.placements for part in p.parts]
    assigned = [(part.agent_id, slot) for part in parts for slot in part.slots]
    assert len(assigned) == len(set(assigned))
    assert all(slot in by_id[name].free and by_id[name].placeable for name, slot in assigned)
    requested = {r.allocation_id: r.slots for r in some_requests}
    for placement in decided.placements:
        counts = [len(part.slots) for part in placement.parts]
        assert sum(counts) == requested[placement.allocation_id]
        assert len(counts) == 1 or 0 not in counts
        assert len({part.agent_id for part in placement.parts}) == len(counts)
    spread = {p.allocation_id for p in decided.placements if len(p.parts) > 1}
    assert not any(r.groups[0].constraints.single_agent for r in some_requests if r.allocation_id in spread)
    decisions = [p.allocation_id for p in decided.placements] + [r.allocation_id for r in decided.refusals]
    assert sorted(decisions + list(decided.waiting)) == sorted(requested)


@given(agents, requests, st.randoms())
def test_a_plan_does_not_depend_on_the_order_of_agents_and_requests(some_agents, some_requests, rng):
    first = plan(PoolView("p", tuple(some_agents), tuple(some_requests)))
    rng.shuffle(some_agents)
    rng.shuffle(some_requests)
    second = plan(PoolView("p", tuple(some_agents), tuple(some_requests)))
    assert sorted(map(repr, first.placements)) == sorted(map(repr, second.placements))


def with_room(name, room, slots=1, placeable=True):
    return AgentView(name, tuple(range(slots)), slots, placeable, room)


def test_containers_without_slots_are_limited_per_agent():
    several = tuple(request(f"r{n}", slots=0, age=n) for n in range(4))
    pool = PoolView("p", (with_room("a", 1), with_room("b", 2)), several)
    placements = placed(pool)
    assert sorted(parts[0][0] for parts in placements.values()) == ["a", "b", "b"]
    assert set(placements) == {"r0", "r1", "r2"}
    assert "max_zero_slot_containers" in plan(pool).waiting["r3"]


def test_a_waiting_request_without_slots_holds_back_no_request_with_slots():
    pool = PoolView("p", (with_room("a", 0),), (request("none", slots=0, priority=1), request("one", 1, 42)))
    assert placed(pool) == {"one": [("a", (0,))]}


def test_a_request_without_slots_waits_while_every_agent_is_away():
    pool = PoolView("p", (with_room("a", 5, placeable=False),), (request("none", slots=0),))
    assert "disabled or disconnected" in plan(pool).waiting["none"]


def test_a_request_pinned_to_an_agent_runs_there_while_it_is_disabled():
    pinned = waiting("build", 0, constraints=Constraints(agent_id="b"))
    disabled_agent = AgentView("b", (), 1, placeable=False)
    assert placed(PoolView("p", (agent("a", 4), disabled_agent), (pinned,)))["build"] == [("b", ())]


def test_a_request_pinned_to_an_agent_waits_for_it():
    pinned = waiting("build", 0, constraints=Constraints(agent_id="b"))
    disconnected = AgentView("b", (), 1, placeable=False, is_connected=False)
    for others in ((agent("a", 4),), (agent("a", 4), disconnected)):
        decided = plan(PoolView("p", others, (pinned,)))
        assert decided.placements == ()
        assert decided.waiting["build"] == "its agent b is not connected"
    full = AgentView("b", (), 1, zero_slot_room=0)
    assert "maximum number of containers without slots" in plan(PoolView("p", (full,), (pinned,))).waiting["build"]
