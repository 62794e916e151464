"""Placement: tables of cases, and what has to hold for any pool."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from determined_master.scheduling.priority import plan
from determined_master.scheduling.view import AgentView, PoolView, RequestView

START = datetime(2026, 1, 1, tzinfo=UTC)


def request(name, slots=1, priority=42, age=0):
    return RequestView(name, slots, priority, START + timedelta(seconds=age))


def agent(name, free, total=None, placeable=True):
    return AgentView(name, tuple(range(free)), free if total is None else total, placeable)


def placed(pool):
    return {p.allocation_id: (p.agent_id, p.slots) for p in plan(pool).placements}


def test_lower_priority_number_goes_first_then_the_older():
    pool = PoolView(
        "default", (agent("a", 2),), (request("late", age=2), request("early", age=1), request("vip", 1, 1, 9))
    )
    assert set(placed(pool)) == {"vip", "early"}
    assert "late" in plan(pool).waiting


def test_the_agent_that_is_left_fullest_is_taken():
    assert placed(PoolView("p", (agent("big", 4), agent("small", 2)), (request("x", 2),)))["x"][0] == "small"


def test_nothing_passes_what_waits_in_a_better_priority():
    pool = PoolView("p", (agent("a", 1, total=2),), (request("wide", 2, 1), request("narrow", 1, 42)))
    assert placed(pool) == {}
    assert "better priority" in plan(pool).waiting["narrow"]


def test_same_priority_may_pass():
    pool = PoolView("p", (agent("a", 1, total=2),), (request("wide", 2, age=0), request("narrow", 1, age=1)))
    assert set(placed(pool)) == {"narrow"}


def test_what_no_agent_can_ever_hold_is_refused_with_the_reason():
    refusal = plan(PoolView("p", (agent("a", 0, total=2), agent("b", 1)), (request("huge", 3),))).refusals[0]
    assert refusal.allocation_id == "huge"
    assert "3 slots" in refusal.reason
    assert "has 2" in refusal.reason


def test_an_agent_inside_its_reconnect_window_counts_for_what_could_be():
    pool = PoolView("p", (agent("away", 4, placeable=False), agent("here", 1)), (request("wide", 4),))
    assert plan(pool).refusals == ()
    assert "wide" in plan(pool).waiting


def test_without_an_agent_it_waits_and_says_so():
    decided = plan(PoolView("p", (), (request("x"),)))
    assert decided.refusals == ()
    assert "no agent" in decided.waiting["x"]


def test_zero_slots_run_anywhere():
    assert placed(PoolView("p", (agent("a", 0, total=1),), (request("aux", 0),)))["aux"] == ("a", ())


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
        RequestView,
        allocation_id=st.uuids().map(str),
        slots=st.integers(0, 9),
        priority=st.integers(1, 99),
        submitted_at=st.datetimes(timezones=st.just(UTC)),
    ),
    unique_by=lambda r: r.allocation_id,
    max_size=12,
)


@given(agents, requests)
def test_no_slot_twice_and_nobody_forgotten(some_agents, some_requests):
    decided = plan(PoolView("p", tuple(some_agents), tuple(some_requests)))
    by_id = {a.id: a for a in some_agents}
    given_away = [(p.agent_id, slot) for p in decided.placements for slot in p.slots]
    assert len(given_away) == len(set(given_away))
    assert all(slot in by_id[name].free and by_id[name].placeable for name, slot in given_away)
    wanted = {r.allocation_id: r.slots for r in some_requests}
    assert all(len(p.slots) == wanted[p.allocation_id] for p in decided.placements)
    told = [p.allocation_id for p in decided.placements] + [r.allocation_id for r in decided.refusals]
    assert sorted(told + list(decided.waiting)) == sorted(wanted)


@given(agents, requests, st.randoms())
def test_the_order_in_which_things_are_listed_does_not_matter(some_agents, some_requests, rng):
    first = plan(PoolView("p", tuple(some_agents), tuple(some_requests)))
    rng.shuffle(some_agents)
    rng.shuffle(some_requests)
    again = plan(PoolView("p", tuple(some_agents), tuple(some_requests)))
    assert sorted(map(repr, first.placements)) == sorted(map(repr, again.placements))
