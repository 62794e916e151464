"""Properties of plans for any pool and any scheduler."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.pools import any_scheduler, applied, as_running, ended, pools

from determined_master.scheduling.plan import Part
from determined_master.scheduling.pool_state import PoolState
from determined_master.scheduling.scheduler import Scheduler, plan
from determined_master.scheduling.view import SchedulerView

anything = pools(any_scheduler)
preempting = pools(st.builds(SchedulerView, preemption=st.just(True), fitting=st.sampled_from(["best", "worst"])))
not_preempting = pools(st.just(SchedulerView()))


@settings(deadline=None)
@given(anything)
def test_no_slot_is_given_twice_and_every_gang_is_whole(pool):
    decided = plan(pool)
    agents = {a.id: a for a in pool.agents}
    requests = {r.allocation_id: r for r in pool.waiting}
    assigned = [(part.agent_id, slot) for p in decided.placements for part in p.parts for slot in part.slots]
    assert len(assigned) == len(set(assigned))
    assert all(slot in agents[name].free for name, slot in assigned)
    containers = Counter(part.agent_id for p in decided.placements for part in p.parts if not part.slots)
    assert all(count <= agents[name].zero_slot_room for name, count in containers.items())
    for placement in decided.placements:
        request = requests[placement.allocation_id]
        for number, group in enumerate(request.groups):
            parts = [part for part in placement.parts if part.group == number]
            assert sum(len(part.slots) for part in parts) == group.total_slots
            where = {agents[part.agent_id] for part in parts}
            assert not {a.id for a in where} & group.constraints.excluded_agents
            if group.constraints.agent_id is not None:
                assert {a.id for a in where} == {group.constraints.agent_id}
            else:
                assert all(a.placeable for a in where)
            if group.constraints.single_agent or group.slots == 0:
                assert [len(part.slots) for part in parts] == [group.slots] * group.count


@settings(deadline=None)
@given(anything)
def test_every_request_is_placed_or_refused_or_has_a_waiting_reason(pool):
    decided = plan(pool)
    placed_or_refused = [p.allocation_id for p in decided.placements] + [r.allocation_id for r in decided.refusals]
    assert sorted([*placed_or_refused, *decided.waiting]) == sorted(r.allocation_id for r in pool.waiting)
    assert all(decided.waiting.values())


@settings(deadline=None)
@given(anything)
def test_a_plan_keeps_the_limits_of_jobs_and_users(pool):
    placements = plan(pool).placements
    after = applied(pool, plan(pool))
    started = {p.allocation_id for p in placements}
    for running in after.running:
        if running.allocation_id not in started or running.slots == 0:
            continue
        of_job = sum(r.slots for r in after.running if r.job_id == running.job_id)
        of_user = sum(r.slots for r in after.running if r.user_id == running.user_id)
        assert running.max_slots is None or of_job <= running.max_slots
        assert pool.scheduler.max_slots_per_user is None or of_user <= pool.scheduler.max_slots_per_user


@settings(deadline=None)
@given(anything)
def test_a_plan_after_an_applied_plan_is_empty(pool):
    second = plan(applied(pool, plan(pool)))
    assert (second.placements, second.releases, second.refusals) == ((), (), ())


@settings(deadline=None)
@given(anything)
def test_no_allocation_is_preempted_for_a_request_that_is_not_better(pool):
    requests = {r.allocation_id: r for r in pool.waiting}
    running = {r.allocation_id: r for r in pool.running}
    for release in plan(pool).releases:
        if release.for_allocation_id is None:  # its job holds more than max_slots
            continue
        victim, request = running[release.allocation_id], requests[release.for_allocation_id]
        assert victim.preemptible
        assert not victim.leaving
        assert victim.job_id != request.job_id
        assert victim.priority >= request.priority
        if pool.scheduler.kind == "priority":
            assert victim.rank > request.rank


@settings(deadline=None)
@given(preempting)
def test_no_released_allocation_is_superfluous(pool):
    """If any release of a request were omitted, the request would not start after the others."""
    decided = plan(pool)
    for allocation_id in {release.for_allocation_id for release in decided.releases} - {None}:
        first = next(iter(r for r in decided.releases if r.for_allocation_id == allocation_id)).for_allocation_id
        mine = [r.allocation_id for r in decided.releases if r.for_allocation_id == first]
        request = next(r for r in pool.waiting if r.allocation_id == first)
        better = [r for r in pool.waiting if r.order < request.order]
        if better or any(r.leaving for r in pool.running):
            continue
        alone = replace(pool, waiting=(request,))
        for spared in mine:
            others = [name for name in mine if name != spared]
            assert plan(ended(alone, others)).placements == ()
        assert [p.allocation_id for p in plan(ended(alone, mine)).placements] == [first]


@settings(deadline=None)
@given(preempting)
def test_no_second_release_for_a_request_while_its_victims_are_leaving(pool):
    """After any of the victims has ended, no other allocation is released for a request that still has victims."""
    after = applied(pool, plan(pool))
    leaving = [r for r in after.running if r.leaving_for]
    for victim in leaving:
        later = ended(after, [victim.allocation_id])
        expected = {r.leaving_for for r in later.running if r.leaving_for}
        assert not expected & ({release.for_allocation_id for release in plan(later).releases} - {None})


@settings(deadline=None)
@given(not_preempting)
def test_without_preemption_nothing_worse_starts_on_slots_that_a_better_one_could_use(pool):
    assert {release.for_allocation_id for release in plan(pool).releases} <= {None}  # above max_slots
    after = applied(pool, plan(pool))
    started = {p.allocation_id for p in plan(pool).placements}
    waiting = [r for r in after.waiting if r.slots and not _held(after, r)]
    for running in (r for r in after.running if r.allocation_id in started and r.slots):
        worse = next(r for r in pool.waiting if r.allocation_id == running.allocation_id)
        for better in (r for r in waiting if r.order < worse.order):
            usable = PoolState.of(after).capacity.usable_by(_shape(after, better))
            assert not usable & {part.agent_id for part in running.parts if part.slots}


@settings(deadline=None)
@given(preempting)
def test_with_preemption_only_what_can_be_preempted_passes_a_better_request(pool):
    """Every allocation that passed it can be preempted for it, so its start is delayed at most by the time to save."""
    after = applied(pool, plan(pool))
    started = {p.allocation_id for p in plan(pool).placements}
    waiting = [r for r in after.waiting if r.slots and not _held(after, r)]
    for running in (r for r in after.running if r.allocation_id in started and r.slots):
        worse = next(r for r in pool.waiting if r.allocation_id == running.allocation_id)
        for better in (r for r in waiting if r.order < worse.order):
            usable = PoolState.of(after).capacity.usable_by(_shape(after, better))
            if not usable & {part.agent_id for part in running.parts if part.slots}:
                continue
            assert running.preemptible
            has_reservation = any(r.leaving for r in after.running)
            assert running.rank > better.rank or has_reservation


@settings(deadline=None)
@given(anything, st.randoms(use_true_random=False))
def test_single_changes_lead_to_the_same_state_as_a_view(pool, rng):
    """Starts from another pool and reaches this one by changes in any order, with decisions in between."""
    scheduler = Scheduler(PoolState("p", pool.scheduler))
    state = scheduler.edit
    extra = [replace(r, allocation_id=f"x{r.allocation_id}") for r in pool.waiting[:3]]
    agents = {a.id: set(a.free) for a in pool.agents}
    passing = []
    for number, agent in enumerate(pool.agents):
        slots = tuple(slot for slot in agents[agent.id] if slot not in agent.disabled)[:1]
        if slots and pool.waiting:
            part = Part(agent.id, slots)
            passing.append(as_running(replace(pool.waiting[0], allocation_id=f"y{number}"), (part,)))
    held = {(part.agent_id, slot) for r in passing for part in r.parts for slot in part.slots}
    changes = [
        *(lambda r=r: state().add(r) for r in [*pool.waiting, *extra]),
        *(lambda r=r: state().run(replace(r, leaving=False)) for r in pool.running),
        *(lambda r=r: state().run(r) for r in passing),
        *(
            lambda a=a: state().set_agent(replace(a, free=tuple(s for s in a.free if (a.id, s) not in held)))
            for a in pool.agents
        ),
    ]
    rng.shuffle(changes)
    for change in changes:
        change()
        scheduler.decide()
    back = [
        *(lambda r=r: state().remove(r.allocation_id) for r in extra),
        *(lambda r=r: state().leave(r.allocation_id) for r in pool.running if r.leaving),
        *(lambda r=r: state().end(r.allocation_id) for r in passing),
    ]
    rng.shuffle(back)
    for change in back:
        change()
        scheduler.decide()
    expected = plan(pool)
    assert comparable(scheduler.plan()) == comparable(expected)
    for name, text in expected.waiting.items():
        assert scheduler.reason_for(name) == text
    for placement in expected.placements:
        scheduler.start(placement)
    for release in expected.releases:
        state().leave(release.allocation_id, release.for_allocation_id)
    for refusal in expected.refusals:
        state().remove(refusal.allocation_id)
    assert comparable(scheduler.plan()) == comparable(plan(applied(pool, expected)))


@settings(deadline=None)
@given(anything, st.randoms(use_true_random=False))
def test_an_updated_scheduler_decides_like_a_new_one(pool, rng):
    """Applies its plans completely or in part while allocations end and arrive. Results and reservations of an earlier
    decision must not affect a later one."""
    scheduler = Scheduler.of(replace(pool, waiting=pool.waiting[::2]))
    late = list(pool.waiting[1::2])
    for _ in range(12):
        decided = scheduler.decide()
        fresh = Scheduler.of(scheduler.edit().view())
        assert comparable(decided) == comparable(fresh.decide())
        assert comparable(decided) == comparable(replace(fresh.plan(), waiting={}))
        is_partial = rng.random() < 0.3
        for placement in decided.placements:
            if not (is_partial and rng.random() < 0.5):
                scheduler.start(placement)
        for release in decided.releases:
            if not (is_partial and rng.random() < 0.5):
                scheduler.edit().leave(release.allocation_id, release.for_allocation_id)
        state = scheduler.pool
        leaving, running = sorted(state.leaving), sorted(state.running)
        if late and rng.random() < 0.4:
            scheduler.edit().add(late.pop())
        if leaving and rng.random() < 0.6:
            scheduler.edit().end(rng.choice(leaving))
        elif running and rng.random() < 0.6:
            scheduler.edit().end(rng.choice(running))
        assert state.held.of_job == {job: n for job, n in _held_slots(state).items() if n}


def _held_slots(state):
    held = Counter()
    for running in state.running.values():
        held[running.job_id] += running.slots
    return held


def comparable(decided):
    return (
        sorted(decided.placements, key=repr),
        sorted(decided.releases, key=repr),
        sorted(decided.refusals, key=repr),
        dict(decided.waiting),
    )


def _held(pool, request):
    return PoolState.of(pool).is_held(request, request.slots)


def _shape(pool, request):
    return PoolState.of(pool).queue.line_of(request.allocation_id).shape_queue.shape
