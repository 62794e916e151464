"""A provider's decisions: never more agents than its maximum, no end of an agent with a container, and a stable state."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.pools import agent, any_scheduler, applied, ended, pools, request, running

from determined.states import InstanceState
from determined_master.providers.decision import Decision, InstanceView, Limits, ProviderView, decide
from determined_master.scheduling.scheduler import plan
from determined_master.scheduling.view import PoolView, SchedulerView

S = InstanceState
LIMITS = Limits(max_agents=3, slots_per_agent=2, idle_timeout=60, start_timeout=100)


def view(*waiting, instances=(), agents=(), running=(), limits=LIMITS, scheduler=SchedulerView(), **more):
    return ProviderView(limits, PoolView("p", tuple(agents), waiting, tuple(running), scheduler), instances, **more)


def up(name, idle=None):
    return InstanceView(name, S.RUNNING, idle_seconds=idle)


def starting(name, seconds=0.0):
    return InstanceView(name, S.STARTING, starting_seconds=seconds)


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([], 0),
        ([request("a")], 1),
        ([request("a"), request("b")], 1),  # both fit on one agent
        ([request("a"), request("b"), request("c")], 2),
        ([request("a", slots=4)], 2),  # spread over two
        ([request("a", slots=4, single_agent=True)], 0),  # no agent is large enough
        ([request("a", slots=7)], 0),  # the whole pool is not large enough
        ([request("a", slots=0)], 1),
        ([request(f"r{n}") for n in range(99)], 3),
        ([request("a", max_slots=1, job="j"), request("b", max_slots=1, job="j"), request("c", slots=2)], 2),
        ([request("a", agent_id="elsewhere")], 0),
    ],
)
def test_as_many_agents_start_as_the_queue_can_use(requests, expected):
    assert decide(view(*requests)).launches == expected


def test_worst_fitting_starts_no_more_agents_than_best_fitting():
    assert decide(view(request("a"), request("b"), scheduler=SchedulerView(fitting="worst"))).launches == 1


def test_agents_that_start_and_idle_ones_are_used_before_new_ones_start():
    queue = [request(f"r{n}") for n in range(4)]
    assert decide(view(*queue, instances=(starting("s"),))).launches == 1
    starting_and_idle = view(*queue, instances=(starting("s"), up("u", idle=0.0)), agents=[agent("u", 2)])
    assert decide(starting_and_idle).launches == 0


def test_an_agent_of_the_queues_next_request_is_not_ended():
    queue = view(request("a", slots=4), instances=(up("u", idle=999.0),), agents=[agent("u", 2)])
    assert decide(queue) == Decision(launches=1)


def test_idle_agents_end_after_their_timeout_the_longest_idle_first_down_to_the_minimum():
    instances = (up("a", 61.0), up("b", 70.0), up("c", 20.0), up("busy"))
    limits = Limits(min_agents=2, max_agents=4, slots_per_agent=2, idle_timeout=60, start_timeout=100)
    assert decide(view(instances=instances, limits=limits)).releases == ("b", "a")
    fewer = decide(view(instances=instances[:3], limits=limits))
    assert (fewer.releases, fewer.wait_seconds) == (("b",), None)
    assert decide(view(instances=(up("c", 20.0),))).wait_seconds == 40.0


def test_a_provider_keeps_its_minimum_of_agents_without_a_queue():
    limits = Limits(min_agents=2, max_agents=4, start_timeout=100)
    assert decide(view(limits=limits)).launches == 2
    assert decide(view(limits=limits, instances=(starting("s"), up("u")))).launches == 0


def test_an_agent_that_does_not_register_in_time_is_given_up_and_still_counts():
    late = tuple(starting(name, 100.0) for name in "abc")
    decided = decide(view(request("r"), instances=late))
    assert (decided.given_up, decided.launches) == (("a", "b", "c"), 0)
    assert decide(view(request("r"), instances=(starting("a", 30.0),))).wait_seconds == 70.0


def test_after_a_failed_launch_one_agent_is_tried_at_a_time():
    queue = [request(f"r{n}", slots=2) for n in range(3)]
    waits = decide(view(*queue, failures=2, seconds_to_retry=8.0))
    assert (waits.launches, waits.wait_seconds) == (0, 8.0)
    assert decide(view(*queue, failures=2)).launches == 1
    assert decide(view(*queue, failures=2, instances=(starting("s"),))).launches == 0


def test_agents_of_a_pool_that_has_no_provider_any_more_end_once_they_are_idle():
    decided = decide(view(limits=Limits(), instances=(starting("s"), up("busy"), up("idle", 0.0))))
    assert (decided.launches, decided.given_up, decided.releases) == (0, ("s",), ("idle",))


def queued(name):
    return InstanceView(name, S.STARTING, is_queued=True)


def test_an_instance_that_waits_outside_the_cluster_is_withdrawn_once_nothing_needs_it():
    three = tuple(queued(name) for name in "abc")
    assert decide(view(request("r", slots=2), instances=three)).withdrawn == ("b", "c")
    assert decide(view(instances=three)).withdrawn == ("a", "b", "c")
    limits = Limits(min_agents=1, max_agents=3, slots_per_agent=2, start_timeout=100)
    assert decide(view(instances=three, limits=limits)).withdrawn == ("b", "c")
    assert decide(view(instances=(starting("a"), starting("b")))).withdrawn == ()


def test_the_time_to_register_has_not_begun_for_an_instance_that_waits_outside_the_cluster():
    decided = decide(view(request("r"), instances=(queued("a"),)))
    assert (decided.given_up, decided.wait_seconds, decided.launches) == ((), None, 0)


def test_an_idle_agent_that_leaves_ends_at_once_and_counts_for_the_maximum_until_then():
    leaving = InstanceView("a", S.RUNNING, idle_seconds=0.0, is_leaving=True)
    limits = Limits(min_agents=1, max_agents=2, slots_per_agent=2, idle_timeout=60, start_timeout=100)
    decided = decide(view(instances=(leaving,), limits=limits))
    assert (decided.releases, decided.launches) == (("a",), 1)
    busy = InstanceView("a", S.RUNNING, is_leaving=True)
    assert decide(view(instances=(busy,), limits=limits)).releases == ()


OF_TWO_NODES = Limits(max_agents=4, slots_per_agent=1, nodes=2, idle_timeout=60, start_timeout=100)


def test_an_instance_of_two_nodes_serves_a_request_for_both_and_the_maximum_counts_agents():
    assert decide(view(request("r", slots=2), limits=OF_TWO_NODES)).launches == 1
    assert decide(view(*[request(f"r{n}", slots=2) for n in range(5)], limits=OF_TWO_NODES)).launches == 2
    running = InstanceView("a", S.RUNNING, nodes=2)
    queue = [request(f"r{n}", slots=2) for n in range(5)]
    assert decide(view(*queue, instances=(running,), limits=OF_TWO_NODES)).launches == 1


def test_an_instance_of_two_nodes_of_which_one_is_needed_is_not_ended():
    idle = InstanceView("a", S.RUNNING, idle_seconds=99.0, nodes=2)
    agents = [agent("a-0", 1), agent("a-1", 1)]
    needed = view(request("r"), instances=(idle,), agents=agents, limits=OF_TWO_NODES)
    assert decide(needed).releases == ()
    assert decide(view(instances=(idle,), agents=agents, limits=OF_TWO_NODES)).releases == ("a",)


limits = st.builds(
    lambda low, more, slots: Limits(low, low + more, slots, zero_slot_room=2, idle_timeout=60, start_timeout=100),
    st.integers(0, 2),
    st.integers(1, 3),
    st.integers(1, 3),
)
instance = st.tuples(st.sampled_from(InstanceState), st.floats(0, 200), st.none() | st.floats(0, 200)).filter(
    lambda drawn: drawn[0] is not S.ENDED
)


@settings(deadline=None)
@given(pools(any_scheduler), limits, st.lists(instance, max_size=6), st.integers(0, 2), st.floats(0, 9))
def test_a_provider_keeps_its_maximum_and_ends_no_busy_agent(pool, bounds, drawn, failures, retry):
    instances = tuple(InstanceView(f"a{n}", *values) for n, values in enumerate(drawn))
    decided = decide(ProviderView(bounds, pool, instances, failures, retry))
    assert len(instances) + decided.launches <= max(bounds.max_agents, len(instances))
    by_name = {instance.agent_id: instance for instance in instances}
    for name in decided.releases:
        assert by_name[name].state is S.RUNNING
        assert (by_name[name].idle_seconds or 0) >= bounds.idle_timeout
    for name in decided.given_up:
        assert by_name[name].state is S.STARTING
        assert by_name[name].starting_seconds >= bounds.start_timeout
    remaining = sum(instance.state is S.RUNNING for instance in instances) - len(decided.releases)
    on_time = sum(instance.state is S.STARTING and instance.agent_id not in decided.given_up for instance in instances)
    assert not decided.releases or remaining + on_time >= bounds.min_agents


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 4), max_size=8), limits, any_scheduler.filter(lambda s: not s.max_slots_per_user))
def test_all_requests_run_and_the_agents_end(slots, bounds, scheduler):
    """Plays agents that register, run the scheduler's placements, and end when they are not needed."""
    pool = PoolView("p", (), tuple(request(f"r{n}", slots=s, age=n) for n, s in enumerate(slots)), (), scheduler)
    agents = 0
    for _ in range(4 * len(slots) + 4):
        instances = tuple(
            up(agent_view.id, None if is_busy(pool, agent_view.id) else 61.0) for agent_view in pool.agents
        )
        decided = decide(ProviderView(bounds, pool, instances))
        remaining = [agent_view for agent_view in pool.agents if agent_view.id not in decided.releases]
        assert not any(is_busy(pool, name) for name in decided.releases)
        new = [
            agent(f"n{agents + n}", bounds.slots_per_agent, zero_slot_room=bounds.zero_slot_room)
            for n in range(decided.launches)
        ]
        agents += len(new)
        assert len(remaining) + len(new) <= bounds.max_agents
        if decided == Decision() and not pool.running and not plan(pool).placements:
            break
        pool = PoolView("p", (*remaining, *new), pool.waiting, pool.running, scheduler)
        pool = applied(pool, plan(pool))
        pool = ended(pool, [allocation.allocation_id for allocation in pool.running])
    else:
        raise AssertionError("it does not come to rest")
    assert len(pool.agents) == bounds.min_agents
    assert not [r for r in pool.waiting if r.slots <= bounds.slots_per_agent]


def is_busy(pool, name):
    return any(part.agent_id == name for allocation in pool.running for part in allocation.parts)


def test_a_provider_does_not_count_running_allocations_twice():
    busy = running("x", {"u": (0, 1)})
    decided = decide(view(request("r"), instances=(up("u"),), agents=[agent("u", 0, 2)], running=[busy]))
    assert decided.launches == 1
