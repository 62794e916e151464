"""Pools for tests of the scheduler: short constructors, hypothesis strategies, and the effect of a plan."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from determined_master.scheduling.plan import Part, SchedulingPlan
from determined_master.scheduling.pool_state import PoolState
from determined_master.scheduling.view import (
    AgentView,
    Constraints,
    PoolView,
    RequestView,
    RunningView,
    SchedulerView,
    TaskGroup,
)

START = datetime(2026, 1, 1, tzinfo=UTC)


def agent(name, free, total=None, placeable=True, **more):
    return AgentView(name, tuple(range(free)), free if total is None else total, placeable, **more)


def request(name, slots=1, priority=42, age=0, single_agent=False, job=None, **more):
    """Returns a request. ``age``: seconds since its submission, which also gives its position in the queue."""
    constraints = Constraints(single_agent, more.pop("agent_id", None), more.pop("excluded", frozenset()))
    values = {
        "job_id": job or name,
        "groups": (TaskGroup(slots=slots, constraints=constraints),),
        "priority": priority,
        "weight": 1.0,
        "position": float(age),
        "submitted_at": START + timedelta(seconds=age),
        "user_id": 1,
        "preemptible": True,
    }
    return RequestView(name, **(values | more))


def running(name, parts, priority=42, age=0, job=None, **more):
    """Returns a running allocation. ``parts``: agent → slots."""
    values = {
        "job_id": job or name,
        "parts": tuple(Part(agent_id, tuple(slots)) for agent_id, slots in parts.items()),
        "priority": priority,
        "weight": 1.0,
        "position": float(age),
        "user_id": 1,
        "preemptible": True,
    }
    return RunningView(name, **(values | more))


def fair(**more):
    return SchedulerView("fair_share", **more)


PREEMPTING = SchedulerView(preemption=True)


def applied(pool: PoolView, plan: SchedulingPlan) -> PoolView:
    """Returns the pool after the whole plan was applied."""
    requests = {r.allocation_id: r for r in pool.waiting}
    started = []
    free = {a.id: set(a.free) for a in pool.agents}
    room = {a.id: a.zero_slot_room for a in pool.agents}
    for placement in plan.placements:
        r = requests.pop(placement.allocation_id)
        started.append(as_running(r, placement.parts))
        for part in placement.parts:
            free[part.agent_id] -= set(part.slots)
            room[part.agent_id] -= not part.slots
    for refusal in plan.refusals:
        del requests[refusal.allocation_id]
    leaving = {r.allocation_id: r.for_allocation_id for r in plan.releases}
    still = [
        replace(r, leaving=True, leaving_for=leaving[r.allocation_id]) if r.allocation_id in leaving else r
        for r in pool.running
    ]
    agents = tuple(replace(a, free=tuple(sorted(free[a.id])), zero_slot_room=room[a.id]) for a in pool.agents)
    return replace(pool, agents=agents, waiting=tuple(requests.values()), running=(*still, *started))


def as_running(r: RequestView, parts: tuple[Part, ...], **more) -> RunningView:
    return RunningView(
        r.allocation_id,
        r.job_id,
        parts,
        r.priority,
        r.weight,
        r.position,
        r.user_id,
        r.preemptible,
        max_slots=r.max_slots,
        **more,
    )


def ended(pool: PoolView, names: Collection[str]) -> PoolView:
    """Returns the pool after these allocations have ended."""
    state = PoolState.of(pool)
    for name in names:
        state.end(name)
    return state.view()


@st.composite
def pools(draw, schedulers, max_agents=4, max_waiting=8, max_running=6, groups=True):
    """Draws consistent pools: running allocations hold slots that are not free, and jobs have one priority, weight and
    limit."""
    jobs = [
        {
            "job_id": f"j{n}",
            "priority": draw(st.sampled_from([1, 42, 42, 99])),
            "weight": draw(st.sampled_from([1.0, 1.0, 2.0, 0.5])),
            "position": float(draw(st.integers(0, 3))),
            "user_id": draw(st.integers(1, 2)),
            "preemptible": draw(st.sampled_from([True, True, False])),
            "max_slots": draw(st.sampled_from([None, None, None, 2, 4])),
        }
        for n in range(5)
    ]
    names = [f"a{n}" for n in range(draw(st.integers(1, max_agents)))]
    totals = {name: draw(st.integers(0, 5)) for name in names}
    free = {name: list(range(totals[name])) for name in names}
    active = []
    for n in range(draw(st.integers(0, max_running))):
        parts = []
        for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)):
            count = draw(st.integers(0, len(free[name])))
            if count:
                parts.append(Part(name, tuple(free[name][:count])))
                del free[name][:count]
        if parts:
            leaving = draw(st.sampled_from([False, False, False, True]))
            left = draw(st.sampled_from([None, 10.0, 20.0, 30.0]))
            job = draw(st.sampled_from(jobs))
            active.append(
                RunningView(f"r{n}", parts=tuple(parts), leaving=leaving, seconds_to_save=2.0, seconds_left=left, **job)
            )
    agents = []
    for name in names:
        disabled = draw(st.lists(st.integers(0, totals[name] - 1), max_size=1)) if totals[name] else []
        placeable = draw(st.sampled_from([True, True, True, False]))
        left = tuple(slot for slot in free[name] if slot not in disabled)
        connected = placeable or draw(st.booleans())
        agents.append(
            AgentView(
                name,
                left,
                totals[name],
                placeable,
                draw(st.integers(0, 2)),
                is_connected=connected,
                disabled=tuple(disabled),
                condition="enabled" if placeable else "disabled" if connected else "disconnected",
            )
        )
    constraints = st.builds(
        Constraints,
        st.booleans(),
        st.sampled_from([None, None, None, None, names[0]]),
        st.sampled_from([frozenset(), frozenset(), frozenset(names[:1])]),
    )
    group = st.builds(TaskGroup, slots=st.sampled_from([0, 1, 1, 2, 2, 3, 4, 6, 9]), constraints=constraints)
    several = st.lists(
        st.builds(TaskGroup, count=st.integers(1, 2), slots=st.integers(0, 3), constraints=constraints),
        min_size=1,
        max_size=2,
    )
    shapes = (
        st.one_of(group.map(lambda g: [g]), group.map(lambda g: [g]), several) if groups else group.map(lambda g: [g])
    )
    waiting = [
        RequestView(
            f"w{n}",
            groups=tuple(draw(shapes)),
            submitted_at=START + timedelta(seconds=draw(st.integers(0, 5))),
            **draw(st.sampled_from(jobs)),
        )
        for n in range(draw(st.integers(0, max_waiting)))
    ]
    return PoolView("p", tuple(agents), tuple(waiting), tuple(active), draw(schedulers))


any_scheduler = st.builds(
    SchedulerView,
    st.sampled_from(["priority", "priority", "fair_share"]),
    st.booleans(),
    st.sampled_from(["best", "worst"]),
    st.sampled_from([None, None, 4]),
)
