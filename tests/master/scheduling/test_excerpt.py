"""An excerpt of a pool gives the decisions and explanations of the whole pool."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.pools import START, agent, any_scheduler, pools, request

from determined_master.scheduling import excerpt as excerpts
from determined_master.scheduling.excerpt import excerpt
from determined_master.scheduling.explain import explain
from determined_master.scheduling.scheduler import Scheduler
from determined_master.scheduling.view import PoolView


def long_queue(pool: PoolView, copies: int) -> PoolView:
    """Returns the pool with several copies of each request, later ones further back in the queue."""
    waiting = tuple(
        replace(each, allocation_id=f"{each.allocation_id}.{n}", submitted_at=START + timedelta(seconds=n))
        for each in pool.waiting
        for n in range(copies)
    )
    return replace(pool, waiting=waiting)


small = pools(any_scheduler, max_agents=1, max_waiting=5, max_running=3)


@settings(deadline=None, max_examples=60)
@given(small, st.integers(0, 200))
def test_an_excerpt_explains_any_request_as_the_whole_pool_does(pool, number):
    whole = long_queue(pool, 12)
    if not whole.waiting:
        return
    chosen = whole.waiting[number % len(whole.waiting)]
    scheduler = Scheduler.of(whole)
    before, excerpts.SPARE = excerpts.SPARE, 1
    try:
        part = excerpt(scheduler.edit(), chosen.allocation_id)
    finally:
        excerpts.SPARE = before
    ahead = scheduler.pool.queue.count_before(chosen.order)
    assert explain(part, chosen.allocation_id, ahead=ahead) == explain(whole, chosen.allocation_id)
    assert Scheduler.of(part).steps() == scheduler.steps()


def test_an_excerpt_of_a_long_queue_holds_no_more_than_the_pool_has_slots():
    waiting = tuple(request(f"w{n}", 1, age=n, job="search") for n in range(5000))
    scheduler = Scheduler.of(PoolView("p", (agent("a", 2), agent("b", 2)), waiting))
    part = excerpt(scheduler.edit(), "w4000")
    assert len(part.waiting) < 40
    assert "w4000" in {each.allocation_id for each in part.waiting}
